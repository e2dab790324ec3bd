"""Entries that are out for delivery and that an act of an administrator waits for: it is applied when they come back (pure).

The act's settlement takes the place of the one that the outcome would have had, in the same commit. An entry that was
delivered, or that failed for good, is beyond a hold; the act decides. An entry whose outcome is known and not yet durable is
out too, and comes back no more: an act looks again for what it waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.entering import successor_of
from mailismus.queue.interface import Entry, Message, Settlement


class AwaitingAct(Protocol):
    """An act that waits for entries."""

    def settlement_of(self, message: Message, entry: Entry) -> Settlement | None:
        """What becomes of an entry that came back in this state; None: what would have become of it without the act."""

    def came_back(self, message: Message, entry: Entry, settlement: Settlement | None) -> None:
        """The entry came back: as `settlement_of` said, or (None) it is gone or as it would be without the act."""


class ComingBack:
    """The entries that acts wait for; each has one act, the newest."""

    def __init__(self) -> None:
        self._awaited: dict[QueueId, AwaitingAct] = {}
        self._counts: Counter[AwaitingAct] = Counter()

    def __len__(self) -> int:
        return len(self._awaited)

    def expect(self, queue_ids: Collection[QueueId], act: AwaitingAct) -> None:
        """Wait for these entries, which are out."""
        for queue_id in queue_ids:
            self._take(queue_id)
            self._awaited[queue_id] = act
            self._counts[act] += 1

    def forget(self, act: AwaitingAct) -> None:
        """The act waits for nothing any more."""
        self._awaited = {queue_id: other for queue_id, other in self._awaited.items() if other is not act}
        self._counts.pop(act, None)

    def waited_for(self, act: AwaitingAct, most: int) -> Mapping[SpoolId, Sequence[QueueId]]:
        """Entries that the act waits for, by message: of so many messages, those that it has waited for longest."""
        found: dict[SpoolId, list[QueueId]] = {}
        for queue_id, other in self._awaited.items():
            if other is act and (queue_id.spool_id in found or len(found) < most):
                found.setdefault(queue_id.spool_id, []).append(queue_id)
        return found

    def leave(self, queue_ids: Collection[QueueId], act: AwaitingAct) -> None:
        """The act waits for these no more."""
        for queue_id in queue_ids:
            if self._awaited.get(queue_id) is act:
                self._take(queue_id)

    def count(self, act: AwaitingAct) -> int:
        """How many entries the act waits for."""
        return self._counts[act]

    def _take(self, queue_id: QueueId) -> AwaitingAct | None:
        """Wait for this entry no more. Return the act that did; None: none did."""
        act = self._awaited.pop(queue_id, None)
        if act is not None:
            self._counts[act] -= 1
            if not self._counts[act]:
                del self._counts[act]  # else it is kept for ever
        return act

    def delivered(self, message: Message, entries: Sequence[Entry]) -> None:
        """These entries were delivered."""
        for entry in entries:
            act = self._take(QueueId(message.spool_id, entry.number))
            if act is not None:
                act.came_back(message, entry, None)

    def settled(self, message: Message, entry: Entry, settlement: Settlement) -> Settlement:
        """Return the settlement for an entry whose attempt would lead to this one."""
        act = self._take(settlement.queue_id)
        if act is None:
            return settlement
        after = entry if settlement.area is None else successor_of(entry, settlement, settlement.area)
        acted = None if settlement.area is None else act.settlement_of(message, after)
        act.came_back(message, after, acted)
        return settlement if acted is None else acted

    def given_back(self, message: Message, entries: Sequence[Entry]) -> tuple[list[Entry], list[Settlement]]:
        """Of entries that come back untried, return those that are given back, and settlements of the others."""
        left: list[Entry] = []
        settlements: list[Settlement] = []
        for entry in entries:
            act = self._take(QueueId(message.spool_id, entry.number))
            acted = act.settlement_of(message, entry) if act is not None else None
            if act is not None:
                act.came_back(message, entry, acted)
            if acted is None:
                left.append(entry)
            else:
                settlements.append(acted)
        return left, settlements
