"""The books of a forecast: outcomes of the entries that are asked about, by next hop."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from mailismus.mail.ids import QueueId
from mailismus.mail.outcome import Outcome
from mailismus.observe.text import shown
from mailismus.plan.forecast import TRACED_ATTEMPTS, ForecastAttempt, HopForecast, percentile
from mailismus.queue.interface import Entry, Message
from mailismus.queue.outcome.disposition import Disposition

_SENT, _DEFERRED, _BOUNCED, _EXPIRED = Disposition.SENT, Disposition.DEFERRED, Disposition.BOUNCED, Disposition.EXPIRED
MAX_REPLY = 200


class HopBook:
    """The entries of one next hop. Times are those of the virtual clock."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries = self.bounced = self.expired = self.attempts = 0
        self.delivered_at = array("d")
        self.ended_at = array("d")
        """When entries left, in order."""
        self.last_reply = b""

    def add(self, count: int) -> None:
        """Add entries that wait."""
        self.entries += count

    def note(self, count: int, outcome: Outcome, disposition: Disposition, now: float) -> None:
        """Note what became of entries in an attempt."""
        self.attempts += count
        if disposition is _DEFERRED:
            self.last_reply = bytes(outcome.reply)
            return
        self.ended_at.extend([now] * count)
        if disposition is _SENT:
            self.delivered_at.extend([now] * count)
        elif disposition is _EXPIRED:
            self.expired += count
        else:
            self.bounced += count

    def told(self, begins_at: float, ends_at: float, shift_s: float, reasons: Sequence[str]) -> HopForecast:
        """The forecast. `shift_s`: UTC minus seconds of the virtual clock."""
        left = self.entries - len(self.ended_at)
        half_at, most_at = (percentile(self.delivered_at, share) for share in (0.5, 0.95))
        later_at = None
        if left:
            since = ends_at - (ends_at - begins_at) / 4
            recent = sum(at >= since for at in self.ended_at)
            later_at = ends_at + left * (ends_at - since) / recent if recent else None
        said = [*reasons]
        if left and self.last_reply:
            said.append(shown(self.last_reply)[:MAX_REPLY])

        def utc(at: float | None) -> float | None:
            return None if at is None else at + shift_s

        gone_at = (self.ended_at[-1] if self.ended_at else begins_at) if not left else None
        counts = self.entries, len(self.delivered_at), self.bounced, self.expired
        times = utc(half_at), utc(most_at), utc(gone_at), utc(later_at)
        return HopForecast(self.name, *counts, *times, self.attempts, tuple(said))


class ForecastBooks:
    """See `waiting.Books`. `name_of`: the next hop of an entry; `wanted`: the entries that are asked about, None: all."""

    def __init__(
        self, name_of: Callable[[Message, Entry], str], wanted: frozenset[QueueId] | None, traced: frozenset[QueueId]
    ) -> None:
        self._name_of, self._wanted = name_of, wanted
        self.hops: dict[str, HopBook] = {}
        self.whole = HopBook("")
        self.traces: dict[QueueId, list[ForecastAttempt]] = {queue_id: [] for queue_id in traced}

    def expect(self, message: Message, entries: Sequence[Entry]) -> None:
        """Note entries that wait."""
        for entry in entries:
            if self._wanted is None or QueueId(message.spool_id, entry.number) in self._wanted:
                self._hop(self._name_of(message, entry)).add(1)
                self.whole.add(1)

    def _hop(self, name: str) -> HopBook:
        hop = self.hops.get(name)
        if hop is None:
            hop = self.hops[name] = HopBook(name)
        return hop

    def note(
        self,
        message: Message,
        entries: Sequence[Entry],
        outcome: Outcome,
        dispositions: Sequence[Disposition],
        now: float,
    ) -> None:
        """See `waiting.Books`."""
        spool_id = message.spool_id
        for entry, disposition in zip(entries, dispositions, strict=True):
            queue_id = QueueId(spool_id, entry.number)
            if self._wanted is None or queue_id in self._wanted:
                self._hop(self._name_of(message, entry)).note(1, outcome, disposition, now)
                self.whole.note(1, outcome, disposition, now)
            trace = self.traces.get(queue_id)
            if trace is not None and len(trace) < TRACED_ATTEMPTS:
                trace.append(ForecastAttempt(now, disposition.value, shown(bytes(outcome.reply))[:MAX_REPLY]))
