"""A message that is kept here until all of it has come: however slowly a program writes it, no server waits for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from mailismus.admin.protocol.injecting import PIECE_BYTES

MOST_IN_MEMORY = 1 << 20
"""Bytes that are held in memory; more lie in a temporary file without a name."""


def kept(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Read all pieces before the first one is given. Raises OSError."""
    with tempfile.SpooledTemporaryFile(MOST_IN_MEMORY) as file:
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            yield piece
