"""Rounds: which bounces are reported together (pure).

The entries of one message that were handed out in one take and its follow-ups, until each has an outcome, are a round.
Its bounces gather here; they are ready when the round is over: when none of the message's entries has been out for
`LINGER_S` (a follow-up take may just be on its way), or `HANG_S` after the first bounce if one attempt hangs. What comes
later makes the next report. Bounces of no round (found at a start, or made by an administrator) are ready at once.

    outcome -> bounced -> (durable) -> sure -> (handed out by the provider) -> collect -> advance -> take
               quiet --------------------------------------------------------------------^

*Rules*: all times are monotonic seconds. At most `max_waiting` entries wait: beyond, the oldest round is over early, which
costs a second report and never a bounce. A crash forgets all of it: the provider still has the bounces.

*Not here*: how many entries are out (`queue.manager`), what a report says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Entry, Message

LINGER_S = 0.5
"""How long no entry of a message must have been out."""
HANG_S = 60.0
"""How long the first bounce of a round waits for the rest of it."""
MAX_TOGETHER = 1000
"""Bounces in one report."""


@attrs.define(eq=False)
class _Round:
    """`begun_at`: when its first entry failed. `quiet_at`: since when none of its entries is out, as far as was said.
    `unsure`: bounces that are not durable yet, so that the provider can't hand them out."""

    begun_at: float
    quiet_at: float | None = None
    unsure: int = 0


class Rounds:
    """The open rounds, the bounces that wait for their end, and those that are ready for their reports."""

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._open: dict[SpoolId, _Round] = {}
        """In the order they began."""
        self._quiet: deque[tuple[float, SpoolId]] = deque()
        """Since when none of a message is out; what does not agree with its round is stale."""
        self._waiting: dict[SpoolId, Message] = {}
        self._ready: dict[SpoolId, Message] = {}
        self.waiting_count = self.ready_count = 0
        """Entries."""
        self.most_of_one = 0
        """Entries of one message that wait, at most."""

    @property
    def has_open(self) -> bool:
        """Whether any round is open."""
        return bool(self._open)

    def bounced(self, spool_id: SpoolId, count: int, now: float) -> None:
        """So many entries of this message failed, and the message has more. Call `sure` when that is durable."""
        known = self._open.get(spool_id)
        if known is None:
            known = self._open[spool_id] = _Round(now)
        known.unsure += count

    def sure(self, spool_id: SpoolId, count: int, now: float) -> None:
        """So many bounces of this message are durable (or, after trouble, are none)."""
        known = self._open.get(spool_id)
        if known is not None:
            known.unsure = max(0, known.unsure - count)
            if known.quiet_at is not None:
                self.quiet(spool_id, now)

    def quiet(self, spool_id: SpoolId, now: float) -> None:
        """No entry of this message is out any more."""
        known = self._open.get(spool_id)
        if known is not None:
            known.quiet_at = now
            self._quiet.append((now, spool_id))

    def linger(self, spool_id: SpoolId, now: float) -> None:
        """Bounces of this message were found, and there may be more of them: wait for those a moment."""
        self._open.setdefault(spool_id, _Round(now))
        self.quiet(spool_id, now)

    def collect(self, message: Message) -> None:
        """Bounces that the provider handed out: they wait for the end of their round, or are ready."""
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
        self.most_of_one = max(self.most_of_one, len(known.entries))
        self._end_surplus()

    def set_max_waiting(self, max_waiting: int) -> None:
        """Set another bound of waiting entries; the oldest rounds beyond it are over at once."""
        self._max_waiting = max_waiting
        self._end_surplus()

    def _end_surplus(self) -> None:
        while self.waiting_count > self._max_waiting:
            self._end(next(iter(self._waiting)))

    def advance(self, now: float, is_out: Callable[[SpoolId], bool]) -> None:
        """Ends the rounds that are over. `is_out`: whether an entry of a message is out for delivery."""
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
        """When `advance` may have something to do."""
        times = []
        if self._quiet:
            times.append(self._quiet[0][0] + LINGER_S)
        if self._open:
            times.append(next(iter(self._open.values())).begun_at + HANG_S)
        return min(times, default=None)

    def take(self, limit: int) -> list[Message]:
        """Bounces that are ready, oldest first, until there are `limit` of them or none: those of one message stay together,
        so the last may go beyond it (never beyond `MAX_TOGETHER` in one)."""
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
        if not self._waiting:
            self.most_of_one = 0

    def _add_ready(self, message: Message) -> None:
        self.ready_count += len(message.entries)
        known = self._ready.setdefault(message.spool_id, message)
        if known is not message:
            known.entries += message.entries


def _number(entry: Entry) -> int:
    return entry.number
