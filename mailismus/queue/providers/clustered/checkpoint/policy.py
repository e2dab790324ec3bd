"""Policy: when a checkpoint begins. Pure: it is told the numbers and the time.

A checkpoint begins
- after a batch, when the memtable, the items since the last checkpoint or the journal have grown to their limits;
- at a tick, when the oldest message is older than `maxage`, or nothing else asked for one `IDLE_S` after a change;
- not within `AGAIN_S` after an abandoned one.

*Not here*: whether one may begin at all (trouble, one under way): `run`.
"""

from __future__ import annotations

MOST_ENTRIES = 20_000
"""Entries of the memtable at which a checkpoint begins: applying one lasts some 5 us for each."""

MOST_ITEMS = 100_000
"""Items in the journal since the last checkpoint at which one begins: this bounds the time of a start."""

IDLE_S = 8.0
"""Seconds after a change at which a checkpoint begins, when nothing else asks for one."""

AGAIN_S = 3.0
"""Seconds before the next try after one was abandoned."""


class CheckpointPolicy:
    """Says when the next checkpoint of one queue begins. All times: UTC seconds."""

    def __init__(self, maxage_s: float, largest_journal: int) -> None:
        """`maxage_s`: how long a message stays in the memtable; `largest_journal`: bytes of segments in use."""
        self._maxage_s = maxage_s
        self._largest_journal = largest_journal
        self._not_before = 0.0
        self._items_then = 0
        """Items in the journal when the last checkpoint became durable."""
        self._changed_at: float | None = None
        """When something changed that no checkpoint covers; None: nothing did."""

    def has_new_items(self, items: int) -> bool:
        """Whether more was written than the last checkpoint's own record. `items`: durable ones so far."""
        return items != self._items_then

    def note_change(self, now: float) -> None:
        """Something changed that the last checkpoint does not cover."""
        self._changed_at = self._changed_at or now

    def is_over_limit(self, entries: int, items: int, used_bytes: int) -> bool:
        """Whether memtable or journal have grown to a limit."""
        return entries >= MOST_ENTRIES or items - self._items_then >= MOST_ITEMS or used_bytes >= self._largest_journal

    def is_due(self, now: float, oldest_since: float | None) -> bool:
        """Whether it is time for one. `oldest_since`: since when the oldest message is in the memtable."""
        # A time ahead of now comes from a clock that was set back since.
        changed_at = self._changed_at
        return (oldest_since is not None and not 0 <= now - oldest_since < self._maxage_s) or (
            changed_at is not None and not 0 <= now - changed_at < IDLE_S
        )

    def may_begin(self, now: float) -> bool:
        """Whether enough time has passed since the last one was abandoned."""
        return not 0 < self._not_before - now <= AGAIN_S

    def note_durable(self, items: int) -> None:
        """A checkpoint is durable; so many items are."""
        self._items_then = items
        self._changed_at = None

    def note_abandoned(self, now: float) -> None:
        """A checkpoint was abandoned."""
        self._not_before = now + AGAIN_S
        self.note_change(now)
