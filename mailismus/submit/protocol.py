"""One session on a socket: when to read, how long to wait, when to close.

*Rules*: one write per turn. Reading stops while the disk is behind, while too many bytes wait for an answer, and while the
client does not read our replies. Time is counted in ticks of the factory, which checks all sessions at each tick: no timer
per session, no call of the clock per packet. A client has `timeout` for each command, however slowly its bytes come, and for
each piece of content. Content that comes for two `timeout`s at less than `MIN_RATE`, or for `MAX_CONTENT_S` in all, is cut
off. A stranger has less time when the listener is crowded. Time in which the client waits for us does not count.
A TLS handshake has `HANDSHAKE_S`; nothing is sent in plain text meanwhile. A session keeps the terms that it began with.

*Not here*: the protocol (`smtp.server`), TLS (`net.tls`), transactions (`submit.reception`), listening and stopping
(`submit.task`), the number of sessions (`submit.sessions`).
"""

from __future__ import annotations

from twisted.internet.interfaces import IProtocol, ITransport
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.net.close import close_now
from mailismus.net.connection import AcceptedConnection
from mailismus.net.send import Sent, send_now, when_drained
from mailismus.smtp import replies
from mailismus.smtp.server.engine import ServerEngine
from mailismus.smtp.server.limits import Security
from mailismus.smtp.server.state import ServerState
from mailismus.submit.ending import Ending
from mailismus.submit.policy import Standing
from mailismus.submit.reception import Reception
from mailismus.submit.terms import SessionOwner

# Read for each packet: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_CONTENT, _HANDSHAKE, _CLOSED = ServerState.CONTENT, ServerState.HANDSHAKE, ServerState.CLOSED
_RELAY_CLIENT = Standing.RELAY_CLIENT

MIN_RATE = 100
"""Bytes per second of content that a client must send, on average over two `timeout`s. The slowest modem sends ten times as
much, and an attacker that holds a thousand connections has to send for each."""
CLOSE_TICKS = 10
"""Ticks for a closing connection: to take our last reply and to end TLS."""


@implementer(IProtocol)
class ServerSession:
    """One connection. Slots and no base class: many clients make one connection per message."""

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
        "_plain",
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
        """Begin the session: a client has connected."""
        factory = self._factory
        self.transport = transport
        plain = self._plain = transport if isinstance(transport, AcceptedConnection) else None
        terms = self._terms = factory.terms
        standing = self._standing
        self._reception = Reception(factory.desk, self._host, standing, self._answer)
        limits = terms.relay_limits if standing is _RELAY_CLIENT else terms.limits
        self._server = ServerEngine(limits, self._reception)
        factory.enter(self)
        if self._server.state is _HANDSHAKE:
            self._begin_tls()
        elif plain is None:
            self._write(factory.greeting)
        else:
            plain.send(factory.greeting)

    def connectionMade(self) -> None:
        """`makeConnection` has done everything."""

    def dataReceived(self, data: bytes) -> None:
        """Give bytes of the client to the engine, and send the replies."""
        server = self._server
        out = server.receive(data)
        if out:
            self._tick = self._factory.tick
            plain = self._plain
            is_sent = self._write(out) if plain is None else plain.send(out)
            if is_sent and server.is_ready:  # the usual case: the client's next bytes are all that is waited for
                return
            self._follow(out, is_sent)
        elif server.state is _CONTENT:
            self._tick = self._factory.tick
        if server.is_asking and (server.is_congested or server.state is _CONTENT or self._is_draining):
            self._regulate()  # else reading goes on

    def connectionLost(self, reason: Failure) -> None:
        """End the session. A message whose final dot was received is stored all the same."""
        if self._server.state is not _CLOSED:
            self._server.close()
        self._reception.end()
        self._factory.leave(self)

    # -- TLS

    def _begin_tls(self) -> None:
        self._tick = self._factory.tick
        tls = self._terms.tls
        assert tls is not None  # `limits.security` says that there is TLS
        self._plain = None
        self.transport = tls.begin(self.transport, self)

    def handshake_completed(self, tls: bytes) -> None:
        """Begin the session anew under TLS; if the connection began with TLS, greet the client now."""
        if self._server.state is _CLOSED:  # the session gave up the handshake meanwhile
            return
        self._tick = self._factory.tick
        self._server.begin_secure()
        self._reception.secure(tls)
        if self._terms.limits.security is Security.FIRST:
            self._write(self._factory.greeting)

    def handshake_failed(self, why: bytes) -> None:
        """Log that the handshake failed; `connectionLost` follows."""
        if self._server.state is _CLOSED:
            why = b"not done in time"
        self._factory.endings.note(Ending.NO_TLS, self._host, why)

    # -- replies

    def _answer(self, reply: bytes) -> None:
        """Take the answer of the reception to the open question."""
        factory, server = self._factory, self._server
        self._tick = factory.tick
        if server.state is _CLOSED:
            return
        out = server.answer(reply)
        if out:
            plain = self._plain
            is_sent = self._write(out) if plain is None else plain.send(out)
            if not (is_sent and server.is_ready):
                self._follow(out, is_sent)
        if factory.desk.is_closing and not server.is_asking:
            self.shut_down()
        elif self._is_paused or server.is_asking:
            self._regulate()

    def _write(self, data: bytes) -> bool:
        """Send these bytes at once. Return whether none wait."""
        plain = self._plain
        return send_now(self.transport, (data,)) is Sent.ALL if plain is None else plain.send(data)

    def _follow(self, out: bytes, is_sent: bool) -> None:
        """Do what follows these replies, and send those behind them. `is_sent`: whether none wait."""
        server = self._server
        while True:
            state = server.state
            if state is _CLOSED:
                if out.endswith(replies.TOO_MANY_ERRORS):
                    self._factory.endings.note(Ending.TOO_MANY_ERRORS, self._host, _place_of(server, server.last_state))
                self._close()
                return
            if state is _HANDSHAKE:
                self._begin_tls()
                return
            if not is_sent and not self._is_draining:
                self._is_draining = True
                when_drained(self.transport, self._drained)
                self._regulate()
            if self._is_draining or not server.has_more:
                return
            out = server.receive(b"")
            is_sent = self._write(out)

    def _drained(self) -> None:
        self._is_draining = False
        self._tick = self._factory.tick
        server = self._server
        if server.state is not _CLOSED and server.has_more:
            out = server.receive(b"")
            self._follow(out, self._write(out))
        self._regulate()

    def _end(self, reply: bytes) -> None:
        """End the session with a last reply; without one during a handshake."""
        may_reply = self._server.state is not _HANDSHAKE
        self._server.close()
        self._reception.reset()
        if may_reply:
            self._write(reply)
            self._close()
        else:
            self._abort()

    def _close(self) -> None:
        self._tick = self._factory.tick
        close_now(self.transport)

    # -- reading, time, stopping

    def _regulate(self) -> None:
        """Pause or resume reading: pause while the client does not take replies, or too much waits for an answer."""
        server = self._server
        if server.state is _CLOSED:
            return
        is_paused = self._is_draining or (server.is_asking and (server.is_congested or server.state is _CONTENT))
        if is_paused is not self._is_paused:
            self._is_paused = is_paused
            # ITransport does not name IPushProducer, every transport of a stream has it
            if is_paused:
                self.transport.pauseProducing()  # type: ignore[attr-defined]
            else:
                self.transport.resumeProducing()  # type: ignore[attr-defined]

    def check_time(self) -> None:
        """Enforce the time-outs. Called at each tick."""
        factory, server = self._factory, self._server
        tick, since = factory.tick, self._tick
        patience = factory.stranger_ticks if self._standing is Standing.STRANGER else factory.timeout_ticks
        if server.state is _CLOSED:
            if tick - since > CLOSE_TICKS:
                self._abort()
        elif server.state is _HANDSHAKE:
            if tick - since > min(factory.handshake_ticks, patience):
                self._abort()
        elif server.is_asking:  # the client waits for us
            self._tick = tick
            self._content_tick += 1
            self._content_since += 1
        elif self._is_draining:
            if tick - since > patience:
                self._cut_off(Ending.NOT_READING)
        elif tick - since > patience:
            self._cut_off(Ending.TIMED_OUT)
        elif server.state is _CONTENT:
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
        """End the session: the client exceeded a time-out."""
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
        """Restart all time-outs: the length of a tick changes."""
        self._tick = self._content_tick = self._content_since = self._factory.tick
        self._content_size = self._server.wire_bytes

    def shut_down(self) -> None:
        """End the session: the service stops. If a message waits for the disk after its final dot, its reply goes first."""
        server = self._server
        if server.state is not _CLOSED and (server.state is _CONTENT or not server.is_asking):
            self._end(replies.SHUTTING_DOWN)

    def give_up(self) -> None:
        """End the session without waiting for any reply."""
        self._abort()

    @property
    def is_awaited(self) -> bool:
        """Whether a message of the session waits for the disk after its final dot."""
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
    """Return the last command of the client of a session in this state, as logs name it."""
    return b"END-OF-MESSAGE" if state is ServerState.GREETED and server.contents else _PLACES[state]
