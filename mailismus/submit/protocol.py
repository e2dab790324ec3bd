"""Sessions on sockets: what the engine is not told of: when to read, how long to wait, when to close.

*Rules*: one write a turn. Reading stops while the disk is behind, while too much waits for an answer, and while the client
does not read our replies. Time is counted in ticks of the factory, all sessions are looked at in each: no timer per
session, no look at the clock per packet. A client has `timeout` for each command, however it drips, and for each piece of
content; content that comes for two of them at less than `MIN_RATE`, or for `MAX_CONTENT_S` in all, is cut off. A stranger
has less when the listener is crowded. What waits for us costs no client time.
TLS has `HANDSHAKE_S` to begin, and nothing is said in plain text meanwhile. A session keeps the terms it began with.

*Not here*: the protocol (`smtp.server`), TLS (`net.tls`), transactions (`submit.reception`), listening and stopping
(`submit.task`), how many sessions there are (`submit.sessions`).
"""

from __future__ import annotations

from twisted.internet.interfaces import IProtocol, ITransport
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.net.close import close_now
from mailismus.net.send import Sent, send_now, when_drained
from mailismus.smtp import replies
from mailismus.smtp.server import ServerEngine
from mailismus.smtp.server_limits import Security
from mailismus.smtp.server_state import ServerState
from mailismus.submit.ending import Ending
from mailismus.submit.policy import Standing
from mailismus.submit.reception import Reception
from mailismus.submit.terms import SessionOwner

MIN_RATE = 100
"""Bytes a second that content must bring in each two times `timeout`: the slowest line brings ten times as much, and who
holds a thousand connections has to send for it."""
CLOSE_TICKS = 10
"""Ticks that a closing connection has to take our last reply, and to end TLS."""


@implementer(IProtocol)
class ServerSession:
    """One connection. Slots and no base class: made and gone once a message under load."""

    __slots__ = (
        "__weakref__",
        "_content",
        "_content_since",
        "_content_size",
        "_content_tick",
        "_factory",
        "_host",
        "_is_draining",
        "_is_paused",
        "_reception",
        "_server",
        "_standing",
        "_terms",
        "_tick",
        "counted_as",
        "transport",
    )

    transport: ITransport

    def __init__(self, factory: SessionOwner[ServerSession], host: str, standing: Standing, counted_as: str | bytes) -> None:
        self._factory, self._host, self._standing, self.counted_as = factory, host, standing, counted_as
        self._is_draining = self._is_paused = False
        self._tick = factory.tick
        self._content = self._content_tick = self._content_since = self._content_size = 0

    # -- what Twisted calls

    def makeConnection(self, transport: ITransport) -> None:
        """A client has connected."""
        factory = self._factory
        self.transport = transport
        terms = self._terms = factory.terms
        standing = self._standing
        self._reception = Reception(factory.desk, self._host, standing, self._answer)
        limits = terms.relay_limits if standing is Standing.RELAY_CLIENT else terms.limits
        self._server = ServerEngine(limits, self._reception)
        factory.enter(self)
        if self._server.state is ServerState.HANDSHAKE:
            self._begin_tls()
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
        elif server.state is ServerState.CONTENT:
            self._tick = self._factory.tick
        if server.is_asking:
            self._regulate()

    def connectionLost(self, reason: Failure) -> None:
        """The client, or we, have gone; what is behind its final dot goes on without it."""
        self._server.close()
        self._reception.reset()
        self._factory.leave(self)

    # -- TLS

    def _begin_tls(self) -> None:
        self._tick = self._factory.tick
        tls = self._terms.tls
        assert tls is not None  # the engine knows by `limits.security` whether there is
        self.transport = tls.begin(self.transport, self)

    def handshake_completed(self, tls: bytes) -> None:
        """Begin the session anew under TLS; if the connection began with TLS, greet the client now."""
        if self._server.state is ServerState.CLOSED:  # the session gave up the handshake meanwhile
            return
        self._tick = self._factory.tick
        self._server.begin_secure()
        self._reception.secure(tls)
        if self._terms.limits.security is Security.FIRST:
            send_now(self.transport, (self._factory.greeting,))

    def handshake_failed(self, why: bytes) -> None:
        """The connection ends without TLS."""
        if self._server.state is ServerState.CLOSED:
            why = b"not done in time"
        self._factory.endings.note(Ending.NO_TLS, self._host, why)

    # -- replies

    def _answer(self, reply: bytes) -> None:
        """The reception has the answer to an open question."""
        self._tick = self._factory.tick
        server = self._server
        if server.state is ServerState.CLOSED:
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
            if server.state is ServerState.CLOSED:
                if out.endswith(replies.TOO_MANY_ERRORS):
                    self._factory.endings.note(Ending.TOO_MANY_ERRORS, self._host, _place_of(server, server.last_state))
                self._lose()
                return
            if server.state is ServerState.HANDSHAKE:
                self._begin_tls()
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
        if server.state is not ServerState.CLOSED and server.has_more:
            self._send(server.receive(b""))
        self._regulate()

    def _end(self, reply: bytes) -> None:
        """The last reply, in the middle of whatever is going on; in a handshake nothing can be said."""
        is_told = self._server.state is not ServerState.HANDSHAKE
        self._server.close()
        self._reception.reset()
        if is_told:
            send_now(self.transport, (reply,))
            self._lose()
        else:
            self._abort()

    def _lose(self) -> None:
        self._tick = self._factory.tick
        close_now(self.transport)

    # -- reading, time, stopping

    def _regulate(self) -> None:
        """Stops or starts reading, as is fit."""
        server = self._server
        if server.state is ServerState.CLOSED:
            return
        is_paused = self._is_draining or (server.is_asking and (server.is_congested or server.state is ServerState.CONTENT))
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
        patience = factory.stranger_ticks if self._standing is Standing.STRANGER else factory.timeout_ticks
        if server.state is ServerState.CLOSED:
            if tick - since > CLOSE_TICKS:
                self._abort()
        elif server.state is ServerState.HANDSHAKE:
            if tick - since > min(factory.handshake_ticks, patience):
                self._abort()
        elif server.is_asking:  # it waits for us
            self._tick = tick
            self._content_tick += 1
            self._content_since += 1
        elif self._is_draining:
            if tick - since > patience:
                self._cut_off(Ending.NOT_READING)
        elif tick - since > patience:
            self._cut_off(Ending.TIMED_OUT)
        elif server.state is ServerState.CONTENT:
            self._check_content(tick, patience)

    def _check_content(self, tick: int, patience: int) -> None:
        server, factory = self._server, self._factory
        if server.contents != self._content:
            self._content, self._content_since = server.contents, tick
            self._content_tick, self._content_size = tick, 0
        passed = tick - self._content_tick
        if passed > 2 * patience:
            if server.wire_bytes - self._content_size < passed * factory.tick_s * MIN_RATE:
                self._cut_off(Ending.TOO_SLOW)
                return
            self._content_tick, self._content_size = tick, server.wire_bytes
        if tick - self._content_since > factory.content_ticks:
            self._cut_off(Ending.TOO_LONG)

    def _cut_off(self, ending: Ending) -> None:
        """The client has had its time."""
        server = self._server
        self._factory.endings.note(ending, self._host, _place_of(server, server.state))
        if ending.reply:
            self._end(ending.reply)
        else:
            self._abort()

    def _abort(self) -> None:
        self._server.close()
        self.transport.abortConnection()  # type: ignore[attr-defined]  # every transport of a stream has it

    def restart_time(self) -> None:
        """The length of a tick changes: what was waited so far counts no more."""
        self._tick = self._content_tick = self._content_since = self._factory.tick
        self._content_size = self._server.wire_bytes

    def shut_down(self) -> None:
        """The service stops: the session ends now, or, if a message waits for the disk behind its final dot, with the
        answer."""
        server = self._server
        if server.state is not ServerState.CLOSED and (server.state is ServerState.CONTENT or not server.is_asking):
            self._end(replies.SHUTTING_DOWN)

    def give_up(self) -> None:
        """No more is waited for."""
        self._abort()

    @property
    def is_awaited(self) -> bool:
        """Whether a message of it waits for the disk behind its final dot."""
        return self._server.is_asking


_PLACES = {
    ServerState.FRESH: b"CONNECT",
    ServerState.GREETED: b"EHLO",
    ServerState.REFUSED: b"MAIL",
    ServerState.SENDER: b"MAIL",
    ServerState.RECIPIENTS: b"RCPT",
    ServerState.CONTENT: b"DATA",
    ServerState.HANDSHAKE: b"STARTTLS",
    ServerState.CLOSED: b"QUIT",
}


def _place_of(server: ServerEngine, state: ServerState) -> bytes:
    """What the client of a session in this state did last, as logs call it."""
    return b"END-OF-MESSAGE" if state is ServerState.GREETED and server.contents else _PLACES[state]
