"""The simulated network: connections to the hosts of sites, which speak SMTP or LMTP with real sessions.

A receiver reads what is sent at the moment of sending, and its replies come back after the round trip and the time that it
takes for each command. So one event stands for a command, or a group of pipelined ones.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable

from twisted.internet.error import ConnectionDone, ConnectionLost, ConnectionRefusedError, TimeoutError  # noqa: A004
from twisted.internet.protocol import ClientFactory, Protocol
from twisted.python.failure import Failure

from mailismus.plan.clock import VirtualClock
from mailismus.plan.site import ReceivingSite, SiteKind

SINGLE_REPLIES_S = 5.0
"""Replies to a group that take longer together come one by one."""


_DONE, _LOST = Failure(ConnectionDone()), Failure(ConnectionLost())  # type: ignore[no-untyped-call]  # Twisted's
_REFUSED = Failure(ConnectionRefusedError(errno.ECONNREFUSED))  # type: ignore[no-untyped-call]  # as above
"""With the number, as a real one has it: the deliverer's words are the system's."""
_TIMED_OUT = Failure(TimeoutError())  # type: ignore[no-untyped-call]  # as above
_GREETING = b"220 mx.example\r\n"
_EHLO = b"250-mx.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE 0\r\n"
_EHLO_PLAIN = _EHLO.replace(b"250-PIPELINING\r\n", b"")
_OK, _GO, _TAKEN, _BYE = b"250 2.1.0 ok\r\n", b"354 go on\r\n", b"250 2.0.0 taken\r\n", b"221 2.0.0 bye\r\n"
_GREY_REPLY = b"450 4.7.1 greylisted\r\n"
_NO_SENDER = b"503 5.5.1 MAIL was refused\r\n"
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
        "_is_lmtp",
        "_is_open",
        "_is_refused",
        "_kept",
        "_left",
        "_pace",
        "_protocol",
        "_sender",
        "_site",
    )

    def __init__(self, clock: VirtualClock, site: ReceivingSite, left: float | None = None) -> None:
        """`left`: as `ReceivingSite.take_over` tells it. What begins such a session takes no time."""
        self._clock, self._site = clock, site
        self._left = left
        self._pace = 1.0 if left is None else 0.0
        """The share of its time that everything takes."""
        self._protocol: Protocol
        self._is_open = True
        self._is_admitted = False
        self._is_content = False
        self._is_lmtp = self._is_refused = False
        self._sender = b""
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
            waits_s = site.habits.round_trip_s / 2 + site.habits.reply_s + site.habits.greeting_s
            self._clock.at(now + self._pace * waits_s, self._receive, _GREETING)
        else:
            self._clock.at(now + site.habits.round_trip_s / 2, self._receive_last, site.habits.too_many + b"\r\n")

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
        pace = self._pace
        if pace != 1.0:
            costs = [pace * cost for cost in costs]
            if self._left is None:
                self._pace = 1.0
        at = max(clock.now + pace * habits.round_trip_s, self._busy_until)
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
                self._left = None
                site.accept(self._accepted)
                replies.append(_TAKEN * (self._accepted if self._is_lmtp else 1))
                costs.append(site.dot_s)
                self._accepted = 0
                continue
            end = data.find(b"\n", at) + 1
            verb = data[at : at + 4]
            reply = _OK
            if verb == b"RCPT":
                said = site.answer(self._sender, _address(data[at:end]), now) if site.asks else None
                if self._is_refused:
                    reply = _NO_SENDER
                elif said is not None:
                    reply = said + b"\r\n"
                elif habits.grey_s and not site.knows(data[at:end], now):
                    reply = _GREY_REPLY
                else:
                    self._accepted += 1
            elif verb == b"MAIL":
                self._accepted = 0
                if self._left is not None:
                    self._pace = self._left
                if site.asks:
                    self._sender = _address(data[at:end])
                self._is_refused = not site.begin(now)
                if self._is_refused:
                    reply = habits.too_fast + b"\r\n"
                    if reply.startswith(b"421"):
                        replies.append(reply)
                        costs.append(habits.reply_s)
                        return True
            elif verb == b"DATA":
                self._is_content = self._accepted > 0
                reply = _GO if self._is_content else _NO_RECIPIENT
            elif verb in (b"EHLO", b"LHLO"):
                self._is_lmtp = verb == b"LHLO"
                reply = _EHLO if habits.is_pipelining else _EHLO_PLAIN
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

    def __init__(self, clock: VirtualClock, site_at: Callable[[str, int], ReceivingSite] | None = None) -> None:
        """`site_at`: the site at an address and port that no site was added for; None: there is no such address."""
        self._clock, self._site_at = clock, site_at
        self.sites: dict[str, ReceivingSite] = {}
        """By address."""

    def add(self, site: ReceivingSite) -> None:
        """Let the hosts of a site listen."""
        for host in site.hosts:
            for address in host.addresses:
                self.sites[address] = site

    def connectTCP(self, host: str, port: int, factory: ClientFactory, timeout: float = 30.0) -> None:
        """See `IReactorTCP`."""
        clock = self._clock
        site = self.sites[host] if self._site_at is None else self._site_at(host, port)
        site.connect()
        if site.is_up(clock.now, host):
            left = site.take_over(host)
            trip_s = site.habits.round_trip_s if left is None else 0.0
            clock.at(clock.now + trip_s, self._connected, (factory, site, left))
            return
        site.waste(is_session=False)
        if site.dead.get(host, site.habits.kind) is SiteKind.MUTE:
            clock.at(clock.now + timeout, self._failed, (factory, _TIMED_OUT))
        else:
            clock.at(clock.now + site.habits.round_trip_s, self._failed, (factory, _REFUSED))

    def connectUNIX(self, address: str, factory: ClientFactory, timeout: float = 30.0) -> None:
        """See `IReactorUNIX`."""
        self.connectTCP(address, 0, factory, timeout)

    def _connected(self, given: tuple[ClientFactory, ReceivingSite, float | None]) -> None:
        factory, site, left = given
        protocol = factory.buildProtocol(None)
        assert protocol is not None
        Wire(self._clock, site, left).begin(protocol)  # type: ignore[arg-type]  # Twisted types it by the widest interface

    def _failed(self, given: tuple[ClientFactory, Failure]) -> None:
        factory, why = given
        factory.clientConnectionFailed(None, why)  # type: ignore[arg-type]  # ours asks nothing of the connector


def _address(line: bytes) -> bytes:
    """The address of MAIL or RCPT."""
    return line.partition(b"<")[2].rpartition(b">")[0]
