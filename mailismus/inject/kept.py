"""A message that is kept here until all of it has come: however slowly a program writes it, no server waits for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from mailismus.admin.protocol.injecting import PIECE_BYTES

MOST_IN_MEMORY = 1 << 20
"""Bytes that are held in memory; more lie in a temporary file without a name."""


@contextmanager
def kept(pieces: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """Read all pieces first; then they are there, until the end of the block. Raises OSError."""
    with tempfile.SpooledTemporaryFile(MOST_IN_MEMORY) as file:
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        yield iter(lambda: file.read(PIECE_BYTES), b"")
