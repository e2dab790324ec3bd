"""Rounds: groups of bounces that are reported together (pure).

The entries of one message that were taken together, in one take and its follow-ups, are a round until each has an outcome.
Its bounces gather here. They are ready when the round is over: when no entry of the message has been out for `LINGER_S` (a
follow-up take may be under way), or `HANG_S` after the first bounce if one attempt hangs. Later bounces make the next
report. Bounces of no round (found at a start, or made by an administrator) are ready at once.

    outcome -> bounced -> (durable) -> sure -> (handed out by the provider) -> collect -> advance -> take
               quiet --------------------------------------------------------------------^

*Rules*: all times are monotonic seconds. At most `max_waiting` entries wait: beyond that the oldest round ends early, which
costs a second report and never a bounce. A crash forgets the rounds: the provider still has the bounces.

*Not here*: the number of entries that are out (`queue.out_entries`), the text of a report.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Entry, Message

LINGER_S = 0.5
"""How long no entry of a message must have been out before its round is over."""
HANG_S = 60.0
"""How long the first bounce of a round waits for the others."""
MAX_TOGETHER = 1000
"""Bounces in one report."""


@attrs.define(eq=False)
class _Round:
    """`begun_at`: when its first entry failed. `quiet_at`: since when none of its entries is out, as far as is known.
    `unsure`: bounces that are not durable yet, so that the provider can't hand them out."""

    begun_at: float
    quiet_at: float | None = None
    unsure: int = 0


class Rounds:
    """The open rounds, the bounces that wait for their end, and those that are ready for their reports."""

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._open: dict[SpoolId, _Round] = {}
        """In the order of their beginnings."""
        self._quiet: deque[tuple[float, SpoolId]] = deque()
        """Since when no entry of a message is out; an item that differs from its round is stale."""
        self._waiting: dict[SpoolId, Message] = {}
        self._ready: dict[SpoolId, Message] = {}
        self.waiting_count = self.ready_count = 0
        """Entries."""

    @property
    def has_open(self) -> bool:
        """Whether any round is open."""
        return bool(self._open)

    def bounced(self, spool_id: SpoolId, count: int, now: float) -> None:
        """Note that `count` entries of this message failed, and the message has more. Call `sure` when that is durable."""
        known = self._open.get(spool_id)
        if known is None:
            known = self._open[spool_id] = _Round(now)
        known.unsure += count

    def sure(self, spool_id: SpoolId, count: int, now: float) -> None:
        """Note that `count` bounces of this message are durable (or, after a failure of the queue, do not exist)."""
        known = self._open.get(spool_id)
        if known is not None:
            known.unsure = max(0, known.unsure - count)
            if known.quiet_at is not None:
                self.quiet(spool_id, now)

    def quiet(self, spool_id: SpoolId, now: float) -> None:
        """Note that no entry of this message is out any more."""
        known = self._open.get(spool_id)
        if known is not None:
            known.quiet_at = now
            self._quiet.append((now, spool_id))

    def linger(self, spool_id: SpoolId, now: float) -> None:
        """Keep the round of this message open for a moment: bounces were found, and more may come."""
        self._open.setdefault(spool_id, _Round(now))
        self.quiet(spool_id, now)

    def collect(self, message: Message) -> None:
        """Add bounces that the provider handed out. They wait for the end of their round, or are ready."""
        count = len(message.entries)
        spool_id = message.spool_id
        if spool_id not in self._open:
            self._add_ready(attrs.evolve(message, entries=list(message.entries)))
            return
        known = self._waiting.get(spool_id)
        if known is None:
            self._waiting[spool_id] = known = attrs.evolve(message, entries=[])
        known.entries += message.entries
        self.waiting_count += count
        self._end_surplus()

    def set_max_waiting(self, max_waiting: int) -> None:
        """Set another bound of waiting entries; the oldest rounds beyond it end at once."""
        self._max_waiting = max_waiting
        self._end_surplus()

    def _end_surplus(self) -> None:
        while self.waiting_count > self._max_waiting:
            self._end(next(iter(self._waiting)))

    def advance(self, now: float, is_out: Callable[[SpoolId], bool]) -> None:
        """End the rounds that are over. `is_out`: whether an entry of a message is out for delivery."""
        quiet, rounds = self._quiet, self._open
        while quiet and quiet[0][0] + LINGER_S <= now:
            at, spool_id = quiet.popleft()
            known = rounds.get(spool_id)
            if known is not None and known.quiet_at == at and not known.unsure and not is_out(spool_id):
                self._end(spool_id)
        while rounds:
            spool_id = next(iter(rounds))
            if rounds[spool_id].begun_at + HANG_S > now:
                break
            self._end(spool_id)

    def next_at(self) -> float | None:
        """Return when `advance` may end a round."""
        times = []
        if self._quiet:
            times.append(self._quiet[0][0] + LINGER_S)
        if self._open:
            times.append(next(iter(self._open.values())).begun_at + HANG_S)
        return min(times, default=None)

    def take(self, limit: int) -> list[Message]:
        """Return ready bounces, oldest first, until there are `limit` of them. Those of one message stay together, so the
        last ones may exceed `limit` (but never `MAX_TOGETHER` in one message)."""
        taken: list[Message] = []
        while limit > 0 and self._ready:
            spool_id, message = next(iter(self._ready.items()))
            entries = sorted(message.entries, key=_number)
            together, rest = entries[:MAX_TOGETHER], entries[MAX_TOGETHER:]
            if rest:
                message.entries = rest
            else:
                del self._ready[spool_id]
            limit -= len(together)
            self.ready_count -= len(together)
            taken.append(attrs.evolve(message, entries=together))
        return taken

    def _end(self, spool_id: SpoolId) -> None:
        self._open.pop(spool_id, None)
        message = self._waiting.pop(spool_id, None)
        if message is not None:
            self.waiting_count -= len(message.entries)
            self._add_ready(message)

    def _add_ready(self, message: Message) -> None:
        self.ready_count += len(message.entries)
        known = self._ready.setdefault(message.spool_id, message)
        if known is not message:
            known.entries += message.entries


def _number(entry: Entry) -> int:
    return entry.number
