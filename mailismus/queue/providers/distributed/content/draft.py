"""A message while it arrives: its bytes in memory, its sum as they come.

*Rule*: all drafts together have a budget. A draft that exceeds it is cut off: it keeps nothing more, and can't be committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.stores.objects import PIECE_BYTES
from mailismus.spool.budget import Budget


class DraftInMemory:
    """`IDraft`, and its content as an `IBody` once it is finished."""

    def __init__(self, spool_id: SpoolId, budget: Budget) -> None:
        self._spool_id, self._budget = spool_id, budget
        self._pieces: list[bytes] = []
        self._sum = hashlib.sha256()
        self._kept_bytes = 0
        self.stored_bytes = 0
        self.is_open = True
        self.is_cut = False
        """Whether it had no room."""

    @property
    def spool_id(self) -> SpoolId:
        return self._spool_id

    def write(self, data: bytes) -> None:
        if not self.is_open:
            return
        self.stored_bytes += len(data)
        if self.is_cut or not self._budget.take(len(data)):
            self.is_cut = True
            self._drop()
            return
        self._kept_bytes += len(data)
        self._sum.update(data)
        self._pieces.append(data)

    def finish(self) -> None:
        """Its commit has begun. The memory stays taken until `end`."""
        self.is_open = False

    def end(self) -> None:
        """Its commit has ended."""
        self._drop()

    def abandon(self) -> None:
        if self.is_open:
            self.is_open = False
            self._drop()

    def _drop(self) -> None:
        self._pieces = []
        kept, self._kept_bytes = self._kept_bytes, 0
        self._budget.give_back(kept)

    def content(self) -> bytes:
        """The content, in one piece."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    @property
    def size_bytes(self) -> int:
        """As `IBody`."""
        return self._kept_bytes

    @property
    def sha256(self) -> bytes:
        """As `IBody`."""
        return self._sum.digest()

    def pieces(self) -> Iterator[bytes]:
        """As `IBody`."""
        for piece in self._pieces:
            for at in range(0, len(piece), PIECE_BYTES):
                yield piece[at : at + PIECE_BYTES]
