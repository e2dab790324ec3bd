"""The receivers: sites of mail hosts on the virtual clock, each with habits, which speak SMTP with real sessions.

A receiver reads what is sent at the moment of sending, and its replies come back after the round trip and the time that it
takes for each command. So one event stands for a command, or a group of pipelined ones. What it refuses for a reason that
only its state explains (dead, full, too fast, too early) is counted as wasted.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs
from twisted.internet.error import ConnectionDone, ConnectionLost, ConnectionRefusedError, TimeoutError  # noqa: A004
from twisted.internet.protocol import ClientFactory, Protocol
from twisted.python.failure import Failure

from benchmarks.simulation.clock import VirtualClock

if TYPE_CHECKING:
    from mailismus.dns.mx import MxHost

SINGLE_REPLIES_S = 5.0
"""Replies to a group that take longer together come one by one."""
MINUTE_S = 60.0


class Kind(enum.Enum):
    """The kinds of receivers."""

    FAST = "fast"
    SLOW = "slow"
    TARPIT = "tarpit"
    CAPPED = "421 above a cap"
    RATED = "421 above a rate"
    DEAD = "dead"
    MUTE = "mute"
    """It accepts no connection and refuses none."""
    GREY = "greylisting"
    FLAPPING = "flapping"

    __hash__ = object.__hash__


@attrs.frozen
class Habits:
    """What a receiver does. Times in seconds; 0: no limit, or never."""

    kind: Kind = Kind.FAST
    round_trip_s: float = 0.03
    reply_s: float = 0.002
    """For each reply."""
    dot_s: float = 0.05
    """For the reply to the final dot, in place of `reply_s`."""
    most_connections: int = 0
    """Connections to all hosts of the site; more are refused by 421."""
    most_a_minute: int = 0
    """Messages in 60 s; more are refused by 421 at MAIL."""
    grey_s: float = 0.0
    """A recipient is refused until so long after its first RCPT."""
    up_s: float = 0.0
    down_s: float = 0.0
    """A flapping one listens for `up_s`, then not for `down_s`."""


class Site:
    """The hosts of one or more domains, which share their limits."""

    __slots__ = (
        *("accepted", "connections", "failed", "habits", "hosts", "messages", "most_a_minute", "most_open", "name", "open"),
        *("seen", "started", "times", "wasted"),
    )

    def __init__(self, name: str, hosts: Sequence[MxHost], habits: Habits) -> None:
        self.name, self.hosts, self.habits = name, tuple(hosts), habits
        self.open = 0
        """Connections that it has accepted, those that it refuses by 421 apart."""
        self.most_open = 0
        self.connections = 0
        """Connections asked for."""
        self.failed = 0
        """Of these, those that became no session."""
        self.messages = 0
        """Transactions begun."""
        self.started = 0
        """Of these, those that it did not refuse by 421."""
        self.most_a_minute = 0
        """The largest number of these in any 60 s, where it counts them."""
        self.accepted = 0
        """Recipients of which it took a message."""
        self.wasted = 0
        """Connections and transactions that only its state refused."""
        self.times: deque[float] = deque()
        self.seen: dict[bytes, float] = {}
        """Recipients that a greylisting one knows, and since when."""

    def is_up(self, now: float) -> bool:
        """Whether it listens."""
        habits = self.habits
        if habits.kind is Kind.FLAPPING:
            return now % (habits.up_s + habits.down_s) < habits.up_s
        return habits.kind is not Kind.DEAD and habits.kind is not Kind.MUTE

    def connect(self) -> None:
        """Count a connection that is asked for."""
        self.connections += 1

    def waste(self, *, is_session: bool = True) -> None:
        """Count an attempt that only its state refused."""
        self.wasted += 1
        self.failed += not is_session

    def admit(self) -> bool:
        """Whether it takes another connection. Counts it."""
        habits = self.habits
        if habits.most_connections and self.open >= habits.most_connections:
            self.waste(is_session=False)
            return False
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        return True

    def leave(self) -> None:
        """Stop counting an accepted connection."""
        self.open -= 1

    def begin(self, now: float) -> bool:
        """Whether another message may begin. Counts it."""
        self.messages += 1
        times, most = self.times, self.habits.most_a_minute
        while times and times[0] <= now - MINUTE_S:
            times.popleft()
        if most and len(times) >= most:
            self.waste()
            return False
        times.append(now)
        self.started += 1
        self.most_a_minute = max(self.most_a_minute, len(times))
        return True

    def knows(self, recipient: bytes, now: float) -> bool:
        """Whether greylisting lets this recipient through. Only the first attempt may be too early without being wasted."""
        first = self.seen.get(recipient)
        if first is None:
            self.seen[recipient] = now
            return False
        if now - first < self.habits.grey_s:
            self.waste()
            return False
        return True

    def accept(self, recipients: int) -> None:
        """Count the recipients of a message that it took."""
        self.accepted += recipients


_DONE, _LOST = Failure(ConnectionDone()), Failure(ConnectionLost())  # type: ignore[no-untyped-call]  # Twisted's
_REFUSED, _TIMED_OUT = Failure(ConnectionRefusedError()), Failure(TimeoutError())  # type: ignore[no-untyped-call]  # as above
_GREETING = b"220 mx.example\r\n"
_EHLO = b"250-mx.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 52428800\r\n"
_OK, _GO, _TAKEN, _BYE = b"250 2.1.0 ok\r\n", b"354 go on\r\n", b"250 2.0.0 taken\r\n", b"221 2.0.0 bye\r\n"
_FULL = b"421 4.7.0 too many connections\r\n"
_TOO_FAST = b"421 4.7.0 too many messages from you\r\n"
_GREY_REPLY = b"450 4.7.1 greylisted\r\n"
_NO_RECIPIENT = b"554 5.5.1 no valid recipients\r\n"
_END = b"\r\n.\r\n"


class Wire:
    """A connection: the transport of a session, and the receiver behind it."""

    disconnecting = False

    __slots__ = (
        "_accepted",
        "_busy_until",
        "_clock",
        "_is_admitted",
        "_is_content",
        "_is_open",
        "_kept",
        "_protocol",
        "_site",
    )

    def __init__(self, clock: VirtualClock, site: Site) -> None:
        self._clock, self._site = clock, site
        self._protocol: Protocol
        self._is_open = True
        self._is_admitted = False
        self._is_content = False
        self._accepted = 0
        """Recipients of the transaction that were accepted."""
        self._kept = b""
        """Bytes of content whose end has not come yet."""
        self._busy_until = 0.0

    def begin(self, protocol: Protocol) -> None:
        """Connect this session."""
        self._protocol = protocol
        site, now = self._site, self._clock.now
        protocol.makeConnection(self)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        if site.admit():
            self._is_admitted = True
            self._clock.at(now + site.habits.round_trip_s / 2 + site.habits.reply_s, self._receive, _GREETING)
        else:
            self._clock.at(now + site.habits.round_trip_s / 2, self._receive_last, _FULL)

    # ------------------------------------------------------------------ the transport

    def write(self, data: bytes) -> None:
        """Take bytes of the session, and plan the replies."""
        if not self._is_open:
            return
        clock, habits = self._clock, self._site.habits
        replies: list[bytes] = []
        costs: list[float] = []
        is_last = self._read(data, replies, costs)
        if not replies:
            return
        at = max(clock.now + habits.round_trip_s, self._busy_until)
        whole_s = sum(costs)
        if whole_s < SINGLE_REPLIES_S or is_last:
            at += whole_s
            clock.at(at, self._receive_last if is_last else self._receive, b"".join(replies))
        else:
            for reply, cost in zip(replies, costs, strict=True):
                at += cost
                clock.at(at, self._receive, reply)
        self._busy_until = at

    def writeSequence(self, parts: Iterable[bytes]) -> None:
        """Take bytes of the session."""
        self.write(b"".join(parts))

    def loseConnection(self) -> None:
        """Close it."""
        self._close()
        self._clock.at(self._clock.now, self._tell_end, _DONE)

    def abortConnection(self) -> None:
        """Cut it off."""
        if self._is_open:
            self._close()
            self._clock.at(self._clock.now, self._tell_end, _LOST)

    # ------------------------------------------------------------------ the receiver

    def _read(self, data: bytes, replies: list[bytes], costs: list[float]) -> bool:
        """Read what was sent. Whether the connection ends with the last reply."""
        site, habits, now = self._site, self._site.habits, self._clock.now
        if self._kept:
            data, self._kept = self._kept + data, b""
        at = 0
        while at < len(data):
            if self._is_content:
                end = data.find(_END, at)
                if end < 0:
                    self._kept = data[at:]
                    return False
                at = end + len(_END)
                self._is_content = False
                site.accept(self._accepted)
                self._accepted = 0
                replies.append(_TAKEN)
                costs.append(habits.dot_s)
                continue
            end = data.find(b"\n", at) + 1
            verb = data[at : at + 4]
            reply = _OK
            if verb == b"RCPT":
                if habits.grey_s and not site.knows(data[at:end], now):
                    reply = _GREY_REPLY
                else:
                    self._accepted += 1
            elif verb == b"MAIL":
                self._accepted = 0
                if not site.begin(now):
                    replies.append(_TOO_FAST)
                    costs.append(habits.reply_s)
                    return True
            elif verb == b"DATA":
                self._is_content = self._accepted > 0
                reply = _GO if self._is_content else _NO_RECIPIENT
            elif verb == b"EHLO":
                reply = _EHLO
            elif verb == b"QUIT":
                replies.append(_BYE)
                costs.append(0.0)
                return True
            at = end
            replies.append(reply)
            costs.append(habits.reply_s)
        return False

    def _receive(self, data: bytes) -> None:
        if self._is_open:
            self._protocol.dataReceived(data)

    def _receive_last(self, data: bytes) -> None:
        if self._is_open:
            self._protocol.dataReceived(data)
            if self._is_open:
                self._close()
                self._protocol.connectionLost(_DONE)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            if self._is_admitted:
                self._site.leave()

    def _tell_end(self, why: Failure) -> None:
        self._protocol.connectionLost(why)


class Network:
    """The `IReactorTCP` of the delivery task: connections to the hosts of sites."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.sites: dict[str, Site] = {}
        """By address."""

    def add(self, site: Site) -> None:
        """Let the hosts of a site listen."""
        for host in site.hosts:
            for address in host.addresses:
                self.sites[address] = site

    def connectTCP(self, host: str, port: int, factory: ClientFactory, timeout: float = 30.0) -> None:
        """See `IReactorTCP`."""
        clock, site = self._clock, self.sites[host]
        site.connect()
        if site.is_up(clock.now):
            clock.at(clock.now + site.habits.round_trip_s, self._connected, (factory, site))
            return
        site.waste(is_session=False)
        if site.habits.kind is Kind.MUTE:
            clock.at(clock.now + timeout, self._failed, (factory, _TIMED_OUT))
        else:
            clock.at(clock.now + site.habits.round_trip_s, self._failed, (factory, _REFUSED))

    def _connected(self, given: tuple[ClientFactory, Site]) -> None:
        factory, site = given
        protocol = factory.buildProtocol(None)
        assert protocol is not None
        Wire(self._clock, site).begin(protocol)  # type: ignore[arg-type]  # Twisted types it by the widest interface

    def _failed(self, given: tuple[ClientFactory, Failure]) -> None:
        factory, why = given
        factory.clientConnectionFailed(None, why)  # type: ignore[arg-type]  # ours asks nothing of the connector
