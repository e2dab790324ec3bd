"""A content in memory, as an object store takes it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from mailismus.queue.providers.distributed.stores.objects import PIECE_BYTES


class WholeBody:
    """`IBody` of bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size_bytes = len(data)
        self.sha256 = hashlib.sha256(data).digest()

    def pieces(self) -> Iterator[bytes]:
        """As `IBody`."""
        for at in range(0, len(self._data), PIECE_BYTES):
            yield self._data[at : at + PIECE_BYTES]
