"""Habits of one next hop as delivery sees them: classes of attempts, durations, a rate that was said (pure).

*Rules*
- What is kept of it takes some kilobytes at most. Counts are halved once they reach `MOST_COUNTED`: what was long ago counts
  little.
- The class of an attempt follows from its reply alone, so that an entry's last reply tells that of the attempt before.
- What greylisting waits for is measured at some recipients, `MAX_WATCHED`: from the first refusal to each attempt behind it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

from mailismus.deliver.knowledge.blame import Event, Sign, judge
from mailismus.deliver.routes.route import NextHop
from mailismus.mail.outcome import RetryClass
from mailismus.mail.reply import Reply
from mailismus.observe.habits import (
    CLASSES,
    MAX_LABELS,
    MAX_REFUSED,
    MAX_REPLY_BYTES,
    NUMBER_OF,
    QUANTILES,
    AttemptClass,
    HopHabits,
)
from mailismus.queue.interface import Entry, Message

MOST_COUNTED = 1000
DURATIONS = 32
"""The last ones that are kept."""
LIMITS = 8
"""Refusals whose limits are kept."""
MAX_WATCHED = 32
_MINUTE = 60
_UNREACHED = (b"4.4.1", b"4.4.3")
_GREY = AttemptClass.GREY
_LASTING = frozenset({AttemptClass.FULL, AttemptClass.REFUSED})


def class_of(reply: Reply) -> AttemptClass:
    """The class of an attempt that ended with this reply, a peer's or our own."""
    if reply.code < 400:
        return AttemptClass.TAKEN
    if reply.code >= 500:
        return AttemptClass.REFUSED
    if reply.enhanced in _UNREACHED:
        return AttemptClass.UNREACHED
    blame = judge(Event.RECIPIENT, reply)
    if blame.sign is Sign.TOO_MUCH:
        return AttemptClass.RATE
    if blame.retry is RetryClass.QUOTA:
        return AttemptClass.FULL
    return _GREY if blame.retry is RetryClass.GREYLISTING else AttemptClass.LATER


def quantiles(values: Iterable[float]) -> tuple[float, ...]:
    """The quantiles that are told; empty: there are no values."""
    found = sorted(values)
    return tuple(round(found[int(share * len(found))], 4) for share in QUANTILES) if found else ()


class _Counts:
    """How often each class followed."""

    __slots__ = ("numbers", "total")

    def __init__(self) -> None:
        self.numbers = [0] * len(CLASSES)
        self.total = 0

    def add(self, number: int, count: int) -> None:
        """Add attempts of the class of this number."""
        self.numbers[number] += count
        self.total += count
        if self.total >= MOST_COUNTED:
            self.numbers = [one // 2 for one in self.numbers]
            self.total = sum(self.numbers)


class SeenHop:
    """What is seen of one next hop. Times are monotonic seconds."""

    __slots__ = (
        *("first", "grey_refused_s", "grey_taken_s", "labels", "later", "limits", "minute", "refused", "replies"),
        *("second", "sending_s", "watched"),
    )

    def __init__(self) -> None:
        self.first = _Counts()
        self.later: dict[AttemptClass, _Counts] = {}
        self.labels: OrderedDict[bytes, None] = OrderedDict()
        self.sending_s: deque[float] = deque(maxlen=DURATIONS)
        self.minute = [0] * _MINUTE
        """Messages that were taken, by the second in which they began, of the last 60 up to `second`."""
        self.second = 0
        self.limits: deque[int] = deque(maxlen=LIMITS)
        self.watched: dict[tuple[bytes, bytes], float] = {}
        """Senders and recipients that greylisting refused, and since when."""
        self.grey_refused_s = self.grey_taken_s = 0.0
        self.replies: dict[AttemptClass, bytes] = {}
        self.refused: OrderedDict[bytes, AttemptClass] = OrderedDict()

    def note_taken(self, entries: Sequence[Entry], message: Message, sending_s: float, now: float) -> None:
        """Note a message that was taken, for these recipients (hot path)."""
        self.sending_s.append(sending_s)
        if now >= self.second + 1:
            self._move_to(now)
        if sending_s < _MINUTE - 1:
            self.minute[int(now - sending_s) % _MINUTE] += 1
        if len(entries) == 1 and entries[0].reply is None:
            self.first.add(0, 1)
        else:
            self._count(entries, 0)
        if self.watched:
            for entry in entries:
                since = self.watched.pop((message.sender, entry.final_recipient), None)
                if since is not None:
                    waited_s = now - since
                    self.grey_taken_s = min(self.grey_taken_s, waited_s) if self.grey_taken_s else waited_s
        if self.refused:
            for entry in entries:
                self.refused.pop(entry.final_recipient, None)

    def note_failed(self, entries: Sequence[Entry], message: Message, reply: Reply, host: bytes, now: float) -> None:
        """Note an attempt that did not deliver."""
        found = class_of(reply)
        self._count(entries, NUMBER_OF[found])
        self.replies[found] = bytes(reply)[:MAX_REPLY_BYTES]
        self.note_label(host)
        if found is _GREY:
            for entry in entries:
                self._watch((message.sender, entry.final_recipient), now)
        elif found in _LASTING:
            for entry in entries:
                self.refused[entry.final_recipient] = found
                self.refused.move_to_end(entry.final_recipient)
                if len(self.refused) > MAX_REFUSED:
                    self.refused.popitem(last=False)

    def note_too_fast(self, reply: Reply, now: float) -> None:
        """Note that its hosts said that there was too much, in a session that stands."""
        self._move_to(now)
        taken = sum(self.minute)
        if taken:
            self.limits.append(taken)
        self.replies[AttemptClass.RATE] = bytes(reply)[:MAX_REPLY_BYTES]

    def note_label(self, label: bytes) -> None:
        """Note a host as it is logged; without an address it is none."""
        if label in self.labels or b"[" not in label:
            return
        self.labels[label] = None
        if len(self.labels) > MAX_LABELS:
            self.labels.popitem(last=False)

    def told(self, next_hop: NextHop, now: float) -> HopHabits:
        """The same as a value."""
        self._move_to(now)
        return HopHabits(
            next_hop.finding.value,
            next_hop.host,
            next_hop.port,
            tuple(label.decode("ascii", "replace") for label in self.labels),
            tuple(self.first.numbers),
            {found: tuple(counts.numbers) for found, counts in self.later.items()},
            quantiles(self.sending_s),
            self._last_minute(),
            max(self.limits, default=0),
            self.grey_refused_s,
            self.grey_taken_s,
            dict(self.replies),
            dict(self.refused),
        )

    # Internal

    def _move_to(self, now: float) -> None:
        """Forget what began more than a minute ago."""
        second = int(now)
        if second > self.second:
            for passed in range(self.second + 1, min(second, self.second + _MINUTE) + 1):
                self.minute[passed % _MINUTE] = 0
            self.second = second

    def _last_minute(self) -> tuple[int, ...]:
        """What began in each of the last seconds, this one first, down to the last of which there is something."""
        counts = [self.minute[(self.second - age) % _MINUTE] for age in range(_MINUTE)]
        while counts and not counts[-1]:
            counts.pop()
        return tuple(counts)

    def _count(self, entries: Sequence[Entry], number: int) -> None:
        """Count an attempt of these entries. `number`: of its class."""
        new = 0
        for entry in entries:
            if entry.reply is None:
                new += 1
            else:
                before = class_of(entry.reply)
                counts = self.later.get(before)
                if counts is None:
                    counts = self.later[before] = _Counts()
                counts.add(number, 1)
        if new:
            self.first.add(number, new)

    def _watch(self, who: tuple[bytes, bytes], now: float) -> None:
        since = self.watched.get(who)
        if since is not None:
            self.grey_refused_s = max(self.grey_refused_s, now - since)
        elif len(self.watched) < MAX_WATCHED:
            self.watched[who] = now
        elif now - next(iter(self.watched.values())) > 86400.0:
            del self.watched[next(iter(self.watched))]
            self.watched[who] = now
