"""Habits of receivers as delivery sees them: classes of attempts, durations, limits that were said (pure).

*Rules*
- Memory is bounded: of next hops and hosts those in use last are kept (`observe.habits`), each with some kilobytes at most.
- A delivery costs a look into a dict, and some additions. Counts are halved once they reach `MOST_COUNTED`: what was long
  ago counts little.
- The class of an attempt follows from its reply alone, so that an entry's last reply tells that of the attempt before.
- What greylisting waits for is measured at some recipients, `MAX_WATCHED`: from the first refusal to each attempt behind it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence

from mailismus.deliver.blame import Event, Sign, judge
from mailismus.deliver.route import NextHop
from mailismus.mail.outcome import RetryClass
from mailismus.mail.reply import Reply
from mailismus.observe.habits import (
    CLASSES,
    MAX_HOPS,
    MAX_HOSTS,
    MAX_LABELS,
    MAX_REFUSED,
    MAX_REPLY_BYTES,
    NUMBER_OF,
    QUANTILES,
    AttemptClass,
    HopHabits,
    HostHabits,
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
_TAKEN, _GREY, _REFUSED = AttemptClass.TAKEN, AttemptClass.GREY, AttemptClass.REFUSED
_LASTING = frozenset({AttemptClass.FULL, AttemptClass.REFUSED})


def class_of(reply: Reply) -> AttemptClass:
    """The class of an attempt that ended with this reply, a peer's or our own."""
    if reply.code < 400:
        return _TAKEN
    if reply.code >= 500:
        return _REFUSED
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


class _Hop:
    """What is known of one next hop."""

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
        """Messages taken in each of the last 60 seconds, up to `second`."""
        self.second = 0
        self.limits: deque[int] = deque(maxlen=LIMITS)
        self.watched: dict[tuple[bytes, bytes], float] = {}
        """Senders and recipients that greylisting refused, and since when."""
        self.grey_refused_s = self.grey_taken_s = 0.0
        self.replies: dict[AttemptClass, bytes] = {}
        self.refused: OrderedDict[bytes, AttemptClass] = OrderedDict()

    def move_to(self, now: float) -> None:
        """Forget what was taken more than a minute ago."""
        second = int(now)
        if second > self.second:
            for passed in range(self.second + 1, min(second, self.second + _MINUTE) + 1):
                self.minute[passed % _MINUTE] = 0
            self.second = second

    def count(self, entries: Sequence[Entry], found: AttemptClass) -> None:
        """Count an attempt of these entries."""
        number = NUMBER_OF[found]
        for entry in entries:
            if entry.reply is None:
                self.first.add(number, 1)
            else:
                before = class_of(entry.reply)
                counts = self.later.get(before)
                if counts is None:
                    counts = self.later[before] = _Counts()
                counts.add(number, 1)

    def told(self, next_hop: NextHop, now: float) -> HopHabits:
        """The same as a value."""
        self.move_to(now)
        return HopHabits(
            next_hop.finding.value,
            next_hop.host,
            next_hop.port,
            tuple(label.decode("ascii", "replace") for label in self.labels),
            tuple(self.first.numbers),
            {found: tuple(counts.numbers) for found, counts in self.later.items()},
            quantiles(self.sending_s),
            sum(self.minute),
            max(self.limits, default=0),
            self.grey_refused_s,
            self.grey_taken_s,
            dict(self.replies),
            dict(self.refused),
        )


class _Host:
    """What is known of one host."""

    __slots__ = ("failure_s", "is_pipelining", "limits", "refusal", "setup_s")

    def __init__(self) -> None:
        self.setup_s: deque[float] = deque(maxlen=DURATIONS)
        self.limits: deque[int] = deque(maxlen=LIMITS)
        self.refusal = b""
        self.is_pipelining = True
        self.failure_s = 0.0

    def stand(self, setup_s: float, *, is_pipelining: bool) -> None:
        """Note a session that stands."""
        self.setup_s.append(setup_s)
        self.is_pipelining = is_pipelining

    def refuse(self, standing: int, reply: bytes) -> None:
        """Note a session that it refused while others stood."""
        self.limits.append(standing)
        self.refusal = reply

    def fail(self, took_s: float) -> None:
        """Note a connection that failed."""
        self.failure_s = took_s


class HabitBook:
    """What is known of all. Times are monotonic seconds."""

    def __init__(self, max_hops: int = MAX_HOPS, max_hosts: int = MAX_HOSTS) -> None:
        self._max_hops, self._max_hosts = max_hops, max_hosts
        self._hops: OrderedDict[NextHop, _Hop] = OrderedDict()
        self._hosts: OrderedDict[tuple[str, int], _Host] = OrderedDict()

    # ------------------------------------------------------------------ what happens

    def note_taken(
        self, next_hop: NextHop, entries: Sequence[Entry], message: Message, sending_s: float, now: float
    ) -> None:
        """Note a message that was taken, for these recipients."""
        hop = self._hop(next_hop)
        hop.sending_s.append(sending_s)
        hop.move_to(now)
        hop.minute[hop.second % _MINUTE] += 1
        if not hop.later and all(entry.reply is None for entry in entries):
            hop.first.add(0, len(entries))
        else:
            hop.count(entries, _TAKEN)
        if hop.watched:
            for entry in entries:
                since = hop.watched.pop((message.sender, entry.recipient), None)
                if since is not None:
                    waited_s = now - since
                    hop.grey_taken_s = min(hop.grey_taken_s, waited_s) if hop.grey_taken_s else waited_s
        if hop.refused:
            for entry in entries:
                hop.refused.pop(entry.recipient, None)

    def note_failed(
        self, next_hop: NextHop, entries: Sequence[Entry], message: Message, reply: Reply, host: bytes, now: float
    ) -> None:
        """Note an attempt that did not deliver."""
        hop, found = self._hop(next_hop), class_of(reply)
        hop.count(entries, found)
        hop.replies[found] = bytes(reply)[:MAX_REPLY_BYTES]
        self._note_label(hop, host)
        if found is _GREY:
            for entry in entries:
                self._watch(hop, (message.sender, entry.recipient), now)
        elif found in _LASTING:
            for entry in entries:
                hop.refused[entry.recipient] = found
                hop.refused.move_to_end(entry.recipient)
                if len(hop.refused) > MAX_REFUSED:
                    hop.refused.popitem(last=False)

    def note_too_fast(self, next_hop: NextHop, reply: Reply, now: float) -> None:
        """Note that the hosts of a next hop said that there was too much, in a session that stands."""
        hop = self._hop(next_hop)
        hop.move_to(now)
        taken = sum(hop.minute)
        if taken:
            hop.limits.append(taken)
        hop.replies[AttemptClass.RATE] = bytes(reply)[:MAX_REPLY_BYTES]

    def note_session(
        self, next_hops: Iterable[NextHop], label: bytes, host: tuple[str, int], setup_s: float, is_pipelining: bool
    ) -> None:
        """Note a session that stands, for jobs of these next hops, with a host that offers PIPELINING or not."""
        self._host(host).stand(setup_s, is_pipelining=is_pipelining)
        for next_hop in next_hops:
            self._note_label(self._hop(next_hop), label)

    def note_refused_session(self, host: tuple[str, int], standing: int, reply: Reply) -> None:
        """Note that a host refused a session while so many others stood."""
        self._host(host).refuse(standing, bytes(reply)[:MAX_REPLY_BYTES])

    def note_no_session(self, host: tuple[str, int], took_s: float) -> None:
        """Note that a connection to a host became no session."""
        self._host(host).fail(took_s)

    # ------------------------------------------------------------------ what is told

    def hops(self, now: float) -> Iterator[HopHabits]:
        """All next hops; the caller may go on in later turns."""
        for next_hop in list(self._hops):
            hop = self._hops.get(next_hop)
            if hop is not None:
                yield hop.told(next_hop, now)

    def hosts(self) -> Iterator[HostHabits]:
        """All hosts, in the same way."""
        for key in list(self._hosts):
            host = self._hosts.get(key)
            if host is not None:
                limits = max(host.limits, default=0), host.refusal
                yield HostHabits(*key, quantiles(host.setup_s), *limits, host.is_pipelining, host.failure_s)

    # Internal

    def _hop(self, next_hop: NextHop) -> _Hop:
        hop = self._hops.get(next_hop)
        if hop is None:
            if len(self._hops) >= self._max_hops:
                self._hops.popitem(last=False)
            hop = self._hops[next_hop] = _Hop()
        return hop

    def _host(self, key: tuple[str, int]) -> _Host:
        host = self._hosts.get(key)
        if host is None:
            if len(self._hosts) >= self._max_hosts:
                self._hosts.popitem(last=False)
            host = self._hosts[key] = _Host()
        return host

    def _note_label(self, hop: _Hop, label: bytes) -> None:
        if label in hop.labels or b"[" not in label:
            return
        hop.labels[label] = None
        if len(hop.labels) > MAX_LABELS:
            hop.labels.popitem(last=False)

    def _watch(self, hop: _Hop, who: tuple[bytes, bytes], now: float) -> None:
        since = hop.watched.get(who)
        if since is not None:
            hop.grey_refused_s = max(hop.grey_refused_s, now - since)
        elif len(hop.watched) < MAX_WATCHED:
            hop.watched[who] = now
        elif now - next(iter(hop.watched.values())) > 86400.0:
            del hop.watched[next(iter(hop.watched))]
            hop.watched[who] = now
