"""The snapshot: the entries that wait, read from a queue within bounds, in times of the virtual clock.

*Rules*: at most `limit` entries are kept, those that are due first: what comes later changes the least of what is told. The
others are counted. Held, failed and deleted entries are counted, and take no part.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable

import attrs

from mailismus.mail.ids import QueueId
from mailismus.plan.clock import STARTS_AT
from mailismus.queue.interface import Area, Entry, Message, Predicate

MAX_ENTRIES = 100_000
"""A forecast keeps some 2 KB for each."""
_WAITING = frozenset({Area.INCOMING, Area.DEFERRED})


@attrs.frozen
class Snapshot:
    """The entries of a forecast. `utc`: the moment, UTC seconds; times of `messages` are those of the virtual clock."""

    utc: float
    messages: tuple[Message, ...]
    entries: int
    left_out: int
    """Entries that wait beyond the limit."""
    others: Counter[Area]
    """Entries that wait for no delivery, by area."""
    wanted: frozenset[QueueId] | None
    """The entries that are asked about; None: all."""

    @property
    def shift_s(self) -> float:
        """UTC minus seconds of the virtual clock."""
        return self.utc - STARTS_AT


def read_snapshot(
    messages: Iterable[Message],
    clock: Callable[[], float],
    limit: int,
    is_wanted: Predicate | None,
    progress: Callable[[int], None],
) -> Snapshot:
    """Read a whole queue, as it is when all is read. `clock`: UTC seconds. `is_wanted`: selects what is asked about; None:
    everything is. `progress` hears of the number of entries read, now and then."""
    kept: list[tuple[float, int, Message]] = []
    """A heap with the latest on top: minus due time of the first entry, a number, the message."""
    others: Counter[Area] = Counter()
    count = number = left_out = read = 0
    wanted: set[QueueId] = set()
    for message in messages:
        read += len(message.entries)
        if number % 1000 == 0:
            progress(read)
        entries = [entry for entry in message.entries if entry.area in _WAITING]
        others.update(entry.area for entry in message.entries if entry.area not in _WAITING)
        if not entries:
            continue
        number += 1
        if is_wanted is not None:
            wanted.update(QueueId(message.spool_id, entry.number) for entry in entries if is_wanted(message, entry))
        first = min(entry.due_at for entry in entries)
        heapq.heappush(kept, (-first, number, attrs.evolve(message, entries=entries)))
        count += len(entries)
        while count > limit and len(kept) > 1:
            _, _, dropped = heapq.heappop(kept)
            count -= len(dropped.entries)
            left_out += len(dropped.entries)
            wanted.difference_update(dropped.queue_ids())
    progress(read)
    utc = clock()
    in_order = sorted(kept, key=lambda one: (-one[0], one[2].spool_id))
    found = _joined([_shifted(message, utc - STARTS_AT) for _, _, message in in_order])
    return Snapshot(utc, found, count, left_out, others, None if is_wanted is None else frozenset(wanted))


def _joined(messages: list[Message]) -> tuple[Message, ...]:
    """The messages, each once: a listing may tell one in parts."""
    by_id: dict[int, Message] = {}
    for message in messages:
        known = by_id.setdefault(message.spool_id, message)
        if known is not message:
            numbers = {entry.number for entry in known.entries}
            entries = [*known.entries, *(entry for entry in message.entries if entry.number not in numbers)]
            by_id[message.spool_id] = attrs.evolve(known, entries=entries)
    return tuple(by_id.values())


def _shifted(message: Message, shift_s: float) -> Message:
    """A message in times of the virtual clock."""
    moved = [
        Entry(
            entry.number,
            entry.recipient,
            entry.area,
            entry.due_at - shift_s,
            entry.attempts,
            entry.reply,
            entry.host,
            entry.words,
        )
        for entry in message.entries
    ]
    return attrs.evolve(message, received_at=message.received_at - shift_s, entries=moved)
