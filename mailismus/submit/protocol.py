"""Sessions on sockets: what the engine is not told of. Connections, their number and their time.

*Rules*: one write a turn. Reading stops while the disk is behind, while too much waits for an answer, and while the client
does not read our replies. Time is counted in ticks of the factory, all sessions are looked at in each: no timer per
session, no look at the clock per packet. A client has `timeout` for each command, however it drips, and for each piece of
content; content that has come for two of them at less than `MIN_RATE` is too slow. What waits for us costs no client time.

*Not here*: the protocol (`smtp.server`), transactions (`submit.reception`), listening and stopping (`submit.task`).
"""

from __future__ import annotations

import math

from twisted.internet.interfaces import IAddress, IProtocol, IProtocolFactory, ITransport
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.net.close import close_now
from mailismus.net.peer import counted_as, peer_host
from mailismus.net.send import Sent, is_backed_up, send_now, when_drained
from mailismus.smtp import replies
from mailismus.smtp.server import Server, ServerLimits, State
from mailismus.submit.reception import Desk, Reception

MIN_RATE = 100
"""Bytes a second that content must come at in the long run."""
CLOSE_TICKS = 10
"""Ticks that a closing connection has to take our last reply."""


@implementer(IProtocol)
class Session:
    """One connection. Slots and no base class: made and gone once a message under load."""

    __slots__ = (
        "__weakref__",
        "_content",
        "_content_tick",
        "_counted_as",
        "_factory",
        "_is_draining",
        "_is_paused",
        "_reception",
        "_server",
        "_tick",
        "transport",
    )

    transport: ITransport

    def __init__(self, factory: SessionFactory) -> None:
        self._factory = factory
        self._is_draining = self._is_paused = False
        self._tick = factory.tick
        self._content = self._content_tick = 0
        self._counted_as: str | bytes = ""

    # -- what Twisted calls

    def makeConnection(self, transport: ITransport) -> None:
        """A client has connected."""
        factory = self._factory
        self.transport = transport
        host = peer_host(transport)
        self._reception = Reception(factory.desk, host, self._answer)
        self._server = Server(factory.limits, self._reception)
        refusal = factory.enter(self, host)
        if refusal:
            self._end(refusal)
        else:
            send_now(transport, (factory.greeting,))

    def connectionMade(self) -> None:
        """Nothing more than `makeConnection`."""

    def dataReceived(self, data: bytes) -> None:
        """Bytes of the client."""
        server = self._server
        out = server.receive(data)
        if out:
            self._tick = self._factory.tick
            self._send(out)
        elif server.state is State.CONTENT:
            self._tick = self._factory.tick
        if server.is_asking:
            self._regulate()

    def connectionLost(self, reason: Failure) -> None:
        """The client, or we, have gone; what is behind its final dot goes on without it."""
        self._server.close()
        self._reception.reset()
        self._factory.leave(self)

    # -- replies

    def _answer(self, reply: bytes) -> None:
        """The reception has the answer to an open question."""
        self._tick = self._factory.tick
        server = self._server
        if server.state is State.CLOSED:
            return
        out = server.answer(reply)
        if out:
            self._send(out)
        if self._factory.desk.is_closing and not server.is_asking:
            self.shut_down()
        else:
            self._regulate()

    def _send(self, out: bytes) -> None:
        server, transport = self._server, self.transport
        while True:
            sent = send_now(transport, (out,))
            if server.state is State.CLOSED:
                self._lose()
                return
            if sent is Sent.WAITING and not self._is_draining:
                self._is_draining = True
                when_drained(transport, self._drained)
                self._regulate()
            if self._is_draining or not server.has_more:
                return
            out = server.receive(b"")

    def _drained(self) -> None:
        self._is_draining = False
        self._tick = self._factory.tick
        server = self._server
        if server.state is not State.CLOSED and server.has_more:
            self._send(server.receive(b""))
        self._regulate()

    def _end(self, reply: bytes) -> None:
        """The last reply, in the middle of whatever is going on."""
        self._server.close()
        self._reception.reset()
        send_now(self.transport, (reply,))
        self._lose()

    def _lose(self) -> None:
        self._tick = self._factory.tick
        close_now(self.transport)

    # -- reading, time, stopping

    def _regulate(self) -> None:
        """Stops or starts reading, as is fit."""
        server = self._server
        if server.state is State.CLOSED:
            return
        is_paused = self._is_draining or (server.is_asking and (server.is_congested or server.state is State.CONTENT))
        if is_paused is not self._is_paused:
            self._is_paused = is_paused
            # ITransport does not name IPushProducer, every transport of a stream has it
            if is_paused:
                self.transport.pauseProducing()  # type: ignore[attr-defined]
            else:
                self.transport.resumeProducing()  # type: ignore[attr-defined]

    def check_time(self) -> None:
        """Called at each tick."""
        factory, server = self._factory, self._server
        tick, since = factory.tick, self._tick
        if server.state is State.CLOSED:
            if tick - since > CLOSE_TICKS and is_backed_up(self.transport):
                self._abort()
        elif server.is_asking:
            self._tick = tick  # it waits for us
        elif self._is_draining:
            if tick - since > factory.timeout_ticks:  # it does not read: a reply would not arrive
                self._abort()
        elif tick - since > factory.timeout_ticks:
            factory.timeouts += 1
            self._end(replies.TIMED_OUT)
        elif server.state is State.CONTENT:
            self._check_rate(tick)

    def _check_rate(self, tick: int) -> None:
        server, factory = self._server, self._factory
        if server.contents != self._content:
            self._content, self._content_tick = server.contents, tick
        passed = tick - self._content_tick
        if passed > 2 * factory.timeout_ticks and server.size_bytes < passed * factory.tick_s * MIN_RATE:
            factory.timeouts += 1
            self._end(replies.TOO_SLOW)

    def _abort(self) -> None:
        self._server.close()
        self.transport.abortConnection()  # type: ignore[attr-defined]  # every transport of a stream has it

    def shut_down(self) -> None:
        """The service stops: the session ends now, or, if a message waits for the disk behind its final dot, with the
        answer."""
        server = self._server
        if server.state is not State.CLOSED and (server.state is State.CONTENT or not server.is_asking):
            self._end(replies.SHUTTING_DOWN)

    def give_up(self) -> None:
        """No more is waited for."""
        self._abort()

    @property
    def is_awaited(self) -> bool:
        """Whether a message of it waits for the disk behind its final dot."""
        return self._server.is_asking


@implementer(IProtocolFactory)
class SessionFactory:
    """The sessions of one listener. `connections`, `refused_connections`, `timeouts`: counters for metrics."""

    noisy = False
    log = Logger()

    def __init__(self, desk: Desk, tick_s: float) -> None:
        limits = desk.policy.limits
        self.desk, self.tick_s = desk, tick_s
        self.limits = ServerLimits(desk.host, limits.maxmsgsize, limits.maxbadreqs)
        self.greeting = replies.greeting(desk.host)
        self.timeout_ticks = math.ceil(limits.timeout_s / tick_s) if limits.timeout_s > 0 else 1 << 62
        self.tick = 0
        self.sessions: set[Session] = set()
        self.connections = self.refused_connections = self.timeouts = 0
        self._open_of_peer: dict[str | bytes, int] = {}

    def buildProtocol(self, addr: IAddress) -> IProtocol:
        """A session for a new connection; whether it may stay shows when it is connected."""
        return Session(self)

    def doStart(self) -> None:
        """A port begins to use this factory."""

    def doStop(self) -> None:
        """A port has done with it."""

    def enter(self, session: Session, host: str) -> bytes:
        """Counts a new session; the reply to end it with, or `b""`."""
        policy, open_of_peer = self.desk.policy, 0
        if policy.limits.maxpeerconnections:
            key = counted_as(host)
            open_of_peer = self._open_of_peer.get(key, 0)
        refusal = policy.check_client(len(self.sessions), open_of_peer)
        self.connections += 1
        if refusal:
            self.refused_connections += 1
            return refusal
        if policy.limits.maxpeerconnections:
            self._open_of_peer[key] = open_of_peer + 1
            session._counted_as = key
        self.sessions.add(session)
        return replies.SHUTTING_DOWN if self.desk.is_closing else b""

    def leave(self, session: Session) -> None:
        """The session is over."""
        self.sessions.discard(session)
        key = session._counted_as
        if key:
            left = self._open_of_peer[key] - 1
            if left:
                self._open_of_peer[key] = left
            else:
                del self._open_of_peer[key]

    def check_time(self) -> None:
        """A tick: each session looks how long it has waited."""
        self.tick += 1
        for session in tuple(self.sessions):
            session.check_time()
