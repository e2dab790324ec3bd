"""Items that a queue on local files writes into its journal or log: what they have alike."""

from __future__ import annotations

from collections.abc import Callable


class JournalItem:
    """Records that are written as a whole (`journal.commit.IItem`)."""

    __slots__ = ("buffers", "may_fail", "size_bytes")

    def __init__(self) -> None:
        self.buffers: list[bytes] = []
        self.size_bytes = 0
        self.may_fail = False

    def add(self, record: bytes) -> None:
        """One record, or a part of one."""
        self.buffers.append(record)
        self.size_bytes += len(record)


class LastingItem(JournalItem):
    """One that is written until it is durable."""

    __slots__ = ()

    def failed(self, error: OSError) -> None:
        raise AssertionError("is written until it is durable") from error


class EpochItem(LastingItem):
    """An epoch record; `done` is called when it is durable."""

    __slots__ = ("_done",)

    def __init__(self, record: bytes, done: Callable[[], None]) -> None:
        super().__init__()
        self._done = done
        self.add(record)

    def durable(self, segment: int, offset: int) -> None:
        self._done()
