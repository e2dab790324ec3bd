"""Spool ids that are never used twice, whatever the clock does: for every provider that has a journal.

An id is an epoch and a counter. An epoch is durable before its first use: a start raises it, and when the counter is nearly
full the next one is written to the journal, in a record of the provider's.
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.errors import Unavailable
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.writer import JournalWriter
from mailismus.mail.ids import SpoolId

EpochItemMaker = Callable[[int, Callable[[], None]], IItem]
"""Makes the item of the journal that says this epoch; the function is called when the item is durable."""


class SpoolIds:
    """Hands out spool ids: an epoch that is durable before its first use, and a counter."""

    RESERVE_AT = 0xF000_0000
    """Counter at which the next epoch is asked for."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.reserved_epoch = epoch
        """The highest epoch that is durable."""
        self._counter = 0

    def wants_epoch(self) -> bool:
        """Whether the next epoch should be made durable now."""
        return self._counter >= self.RESERVE_AT and self.reserved_epoch == self.epoch

    def reserve_next(self) -> int:
        """The next epoch is durable; return it."""
        self.reserved_epoch = self.epoch + 1
        return self.reserved_epoch

    def next(self) -> SpoolId | None:
        """Return a new id; None: the counter is full and the next epoch is not durable yet."""
        if self._counter == 0xFFFF_FFFF:
            if self.reserved_epoch == self.epoch:
                return None
            self.epoch = self.reserved_epoch
            self._counter = 0
        self._counter += 1
        return SpoolId((self.epoch << 32) | self._counter)


class Naming:
    """Hands out spool ids, and has the next epoch reserved in time."""

    def __init__(
        self, spool_ids: SpoolIds, commit: GroupCommit, writer: JournalWriter, make_epoch_item: EpochItemMaker
    ) -> None:
        self._spool_ids = spool_ids
        self._make_epoch_item = make_epoch_item
        self._commit = commit
        self._writer = writer
        self._is_reserving = False

    def next(self) -> SpoolId:
        """Return a new id. Raises `Unavailable` when the next epoch is not durable yet."""
        spool_ids = self._spool_ids
        if spool_ids.wants_epoch() and not self._is_reserving:
            self._is_reserving = True
            self._commit.append(self._make_epoch_item(spool_ids.epoch + 1, self._on_reserved))
        spool_id = spool_ids.next()
        if spool_id is None:
            raise Unavailable("no spool id is left until the next epoch is durable")
        return spool_id

    def _on_reserved(self) -> None:
        self._is_reserving = False
        self._writer.set_epoch(self._spool_ids.reserve_next())

    @property
    def epoch(self) -> int:
        """The highest epoch that may be used."""
        return self._spool_ids.reserved_epoch
