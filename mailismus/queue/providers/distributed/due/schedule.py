"""What is known of due rows: those of the near future one by one, of all others the slots that they are in. Pure.

A server publishes the rows that it wrote, and knows of all of them since its start. Those of others it learns of as their
slots come near, and leaves them alone as long as their writers have leases. A start reads the slots of the next hour, and
later each slot as it comes near. A slot that nothing is known of may have rows: so `next_due` may say nothing where the next
row is more than an hour ahead. It is published at its time all the same.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from uuid import UUID

from mailismus.queue.providers.distributed.format.due import SLOT_S, DueKind, DueShare

NEAR_S = 120.0
"""Seconds before its time when a row is read one by one."""


def _at_once(_: DueShare) -> float:
    return 0.0


class AreaSchedule:
    """Due rows of one area. `start`: the first slot that may have rows."""

    def __init__(self, start: float) -> None:
        self.start = start
        self.read_to = start
        """The first slot that was not read: rows behind are known one by one, rows from here on by their slots."""
        self._near: list[tuple[float, UUID, int, DueShare]] = []
        """A share may have several rows, which are early at the same time: the third decides between them."""
        self._numbers = itertools.count()
        self._unpublished: dict[tuple[float, UUID], DueShare] = {}
        """Those of `_near`, and of what is being published."""
        self._of_others: dict[tuple[float, UUID], DueShare] = {}
        """Rows whose writers have leases."""
        self._slots: set[float] = set()
        """Slots that have rows, from `start` on."""
        self._known: dict[float, set[tuple[float, UUID, int]]] = {}
        """The rows of slots that were read, published or not, by their writers: a slot is read again before it is removed,
        and what another server writes anew for the same time must be published once more."""

    def add(self, due: DueShare, *, is_ours: bool = True, early_at: float | None = None) -> None:
        """A row is there. `is_ours`: it is published by this server. `early_at`: not at its time, but then."""
        self._slots.add(due.slot)
        row = (*due.key, due.writer)
        known = self._known.setdefault(due.slot, set()) if due.slot < self.read_to else None
        if known is not None and row not in known:
            known.add(row)
            if is_ours:
                self._publish(due, due.due_at if early_at is None else early_at)
            else:
                self._of_others[due.key] = due

    def add_early(self, due: DueShare, at: float) -> None:
        """A row is there, of a slot that was not read one by one: it is published then."""
        self._publish(due, at)

    def _publish(self, due: DueShare, at: float) -> None:
        self._unpublished[due.key] = due
        heapq.heappush(self._near, (at, due.name.enqueue_id, next(self._numbers), due))

    def adopt(self, runs: Callable[[int], bool], before: float, early_at: Callable[[DueShare], float] = _at_once) -> None:
        """Publish rows of others: those whose writers do not run; and whatever is in a slot before this one: its writer did
        so, but the server that removes the slot must know. `early_at`: when what was given back is published."""
        for key, due in list(self._of_others.items()):
            if not runs(due.writer):
                self._publish(due, due.due_at if due.kind is not DueKind.GIVEN_BACK else early_at(due))
            elif due.slot < before:
                self._publish(due, due.due_at)
            else:
                continue
            del self._of_others[key]

    def forget(self, due: DueShare) -> None:
        """A row need not be published any more."""
        self._unpublished.pop(due.key, None)

    def note_slot(self, slot: float) -> None:
        """A slot of the far future has rows."""
        self._slots.add(slot)

    def pop_due(self, now: float) -> list[DueShare]:
        """Those whose time has come. Each is given back by `published` or `again`."""
        found = []
        while self._near and self._near[0][0] <= now:
            due = heapq.heappop(self._near)[-1]
            if due.key in self._unpublished:
                found.append(due)
        return found

    def published(self, due: DueShare) -> None:
        """Its trigger is durable."""
        self._unpublished.pop(due.key, None)

    def again(self, due: DueShare, now: float) -> None:
        """It could not be published, and is due as before, be it early."""
        heapq.heappush(self._near, (min(due.due_at, now), due.name.enqueue_id, next(self._numbers), due))

    def next_near(self) -> float | None:
        """When the next row is to be published that is known one by one."""
        return self._near[0][0] if self._near else None

    def next_due(self) -> float | None:
        """When the next row is due, or earlier; None: nothing is known to wait."""
        near = self.next_near()
        if near is not None:
            return near
        return min((slot for slot in self._slots if slot >= self.read_to), default=None)

    def known_slots(self) -> list[float]:
        """All slots that are known to have rows."""
        return sorted(self._slots)

    def set_read_to(self, slot: float) -> float:
        """Slots before this one are read, or being read. Return which it was before."""
        before, self.read_to = self.read_to, slot
        return before

    def slots_read(self) -> list[float]:
        """The slots that were read and are not removed yet, in their order."""
        count = int((self.read_to - self.start) // SLOT_S)
        return [self.start + step * SLOT_S for step in range(count)]

    def slots_to_read(self, now: float) -> list[float]:
        """The slots that have come near, in their order."""
        slots = []
        slot = self.read_to
        while slot <= now + NEAR_S:
            slots.append(slot)
            slot += SLOT_S
        return slots

    def passed(self, before: float) -> tuple[float, list[float]]:
        """The first slot that may have rows yet, and those before it: slots that ended before this time, and of which all is
        published."""
        left = itertools.chain(self._unpublished.values(), self._of_others.values())
        oldest = min((due.slot for due in left), default=before)
        start = min(oldest, before, self.read_to)
        return start, sorted(slot for slot in self._slots if slot < start)

    def removed(self, start: float) -> None:
        """The slots before this one are gone."""
        self.start = max(self.start, start)
        self.read_to = max(self.read_to, self.start)
        self._slots = {slot for slot in self._slots if slot >= self.start}
        self._known = {slot: keys for slot, keys in self._known.items() if slot >= self.start}
        self._of_others = {key: due for key, due in self._of_others.items() if due.slot >= self.start}
