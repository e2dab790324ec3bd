"""A draft in memory: a message while it arrives."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.mail.ids import SpoolId


class MemoryDraft:
    """An `IDraft`. After each `pause_bytes` (0: never) `write` asks to wait for the next turn of the clock."""

    def __init__(self, spool_id: SpoolId, clock: IReactorTime, pause_bytes: int) -> None:
        self._spool_id = spool_id
        self._clock = clock
        self._pause_bytes = pause_bytes
        self._pieces: list[bytes] = []
        self._stored_bytes = 0
        self._unpaused_bytes = 0
        self.content = b""
        self.is_open = True

    @property
    def spool_id(self) -> SpoolId:
        return self._spool_id

    @property
    def stored_bytes(self) -> int:
        return self._stored_bytes

    def write(self, data: bytes) -> Deferred[None] | None:
        if not self.is_open:
            return None
        self._pieces.append(data)
        self._stored_bytes += len(data)
        self._unpaused_bytes += len(data)
        if not self._pause_bytes or self._unpaused_bytes < self._pause_bytes:
            return None
        self._unpaused_bytes = 0
        wait: Deferred[None] = Deferred()
        self._clock.callLater(0, wait.callback, None)
        return wait

    def finish(self) -> None:
        """Commit it: `content` is the written bytes, and further writes are ignored."""
        self.content = b"".join(self._pieces)
        self._pieces.clear()
        self.is_open = False

    def abandon(self) -> None:
        self._pieces.clear()
        self.is_open = False
