"""One session with a host over a socket, without mail: Twisted's transport around the engine, deadlines, TLS, credentials.

*Rules*:
- Each session has one deadline, a number that the tick of its owner compares (no timer for each). A complete reply extends
  it; a single byte of a reply never does. Greeting, EHLO and HELO together have a limit too.
- A TLS handshake has `timeout_connect`, whatever comes meanwhile. No byte is a reply before it is over. What a host says in
  terms of TLS before its first reply over it belongs to the handshake: with TLS 1.3 that is how it refuses our certificate.
- Credentials are shown over TLS alone (`authentication`), within the time limit of greeting and EHLO.
- Quirks of the host that a session finds are remembered (`quirks`).

*Not here*: mail (`protocol`), the order of commands and replies (`smtp.client`), which host (`schedule`), what follows from
a failure (`sessions`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar
from typing import Protocol as Seam

from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import ClientSettings
from mailismus.deliver.authentication.attempt import AuthAttempt
from mailismus.deliver.authentication.failure import AuthFailure
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.knowledge.quirks import HostQuirks, QuirkMemory
from mailismus.deliver.log_line import NO_FIELDS, LogFields
from mailismus.deliver.schedule.destination import FoundHost
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.sessions.tls_clients import TlsClients, TlsConnection
from mailismus.errors import ProtocolError
from mailismus.mail.reply import Reply
from mailismus.net.channel_binding import channel_binding
from mailismus.net.peer import set_no_delay
from mailismus.net.send import Sent, send_now
from mailismus.net.tls import FLOODED
from mailismus.net.tls_client import has_plain_bytes
from mailismus.smtp.auth.scram import ChannelBinding
from mailismus.smtp.client.pipelining import Pipelining
from mailismus.smtp.client.session import SessionEngine
from mailismus.smtp.client.starttls import TlsFailure, TlsFault, TlsUse
from mailismus.smtp.client.state import ClientState

QUIT_S = 5.0
"""How long the host may take to close the connection after QUIT."""
SETUP_STEPS = 2
"""The time limit of greeting, EHLO and HELO together, as a multiple of `timeout`, which limits each."""


class ClientSessionState(enum.Enum):
    """The state of a session."""

    CONNECTING = "connecting"
    GREETING = "greeting"
    """Waiting for greeting and EHLO."""
    HANDSHAKE = "handshake"
    """Negotiating TLS."""
    BUSY = "busy"
    IDLE = "idle"
    QUITTING = "quitting"
    GONE = "gone"


_CONNECTING, _GREETING, _HANDSHAKE = ClientSessionState.CONNECTING, ClientSessionState.GREETING, ClientSessionState.HANDSHAKE
_IDLE, _QUITTING, _GONE = ClientSessionState.IDLE, ClientSessionState.QUITTING, ClientSessionState.GONE

_SETUP_STEPS = {
    ClientState.GREETING: "its greeting",
    ClientState.EHLO: "its reply to EHLO",
    ClientState.LHLO: "its reply to LHLO",
    ClientState.HELO: "its reply to HELO",
    ClientState.STARTTLS: "its reply to STARTTLS",
    ClientState.HANDSHAKE: "the TLS handshake",
    ClientState.AUTH: "its reply to AUTH",
}

S_contra = TypeVar("S_contra", bound="HostSession", contravariant=True)


class HostSessionOwner(Seam[S_contra]):
    """The owner of all sessions, as one of them uses it while it has no mail."""

    monotonic: Callable[[], float]
    quirks: QuirkMemory
    tls: TlsClients
    secrets: Secrets

    def tls_established(self, session: S_contra, *, is_resumed: bool) -> None:
        """Note that TLS is established, as its profile demands."""

    def session_authenticated(self, session: S_contra) -> None:
        """Note that a host accepted the credentials."""

    def session_established(self, session: S_contra) -> None:
        """Note that greeting and EHLO succeeded."""

    def session_failed(self, session: S_contra, reply: Reply) -> None:
        """Note that no session was established."""

    def session_left(self, session: S_contra) -> None:
        """Note that it takes no more jobs: it sent QUIT, or its connection is gone. Called once for each session."""

    def is_worker_wanted(self, session: S_contra) -> bool:
        """Whether mail waits for the worker of a session that sent QUIT: it does not wait for the reply."""

    def session_closed(self, session: S_contra) -> None:
        """Note that its connection is closed or being aborted. Called once for each session, after `session_left`."""


class HostSession(Protocol):
    """A session that ends when it is established."""

    _log = Logger()

    def __init__(
        self,
        owner: HostSessionOwner[Self],
        connection: Connection,
        found: FoundHost,
        label: bytes,
        name: bytes,
        settings: ClientSettings,
    ) -> None:
        """`found`: the host as it was found first; `label`: as logged behind `relay=`; `name`: ours."""
        self._owner: HostSessionOwner[Any] = owner  # of this very kind of session: the argument says so
        self._settings = settings
        self._monotonic = owner.monotonic
        self.now = self._monotonic()
        """When the event that is handled, or the last one, began."""
        self.connection = connection
        self.label = label
        self.state = _CONNECTING
        self.opened_at = self.now
        host = connection.host
        self._host = (host.address, host.port)
        self._quirks = owner.quirks.of(self._host, self.opened_at)
        credentials = host.profile.credentials
        use = owner.tls.use_of(host.profile, self._host, self.opened_at)
        self.client = self._make_engine(name, use, wants_auth=credentials is not None)
        self._auth: AuthAttempt | None = None
        if credentials is not None:
            self._auth = AuthAttempt(self, credentials, owner.secrets, label)
        self._is_authenticating = self._is_cut = False
        self.auth_failure: AuthFailure | None = None
        """Why the session was not authenticated, where that ended it."""
        self._found = found
        self._tls: TlsConnection | None = None
        self.fields = NO_FIELDS
        """The level that was met over TLS, and the accepted credentials, as `Job.fields`; empty: there is no TLS."""
        self._timeout_s = settings.timeout_s
        self.deadline = self.opened_at + settings.timeout_connect_s + 1
        self._cap = 0.0
        """The latest `deadline` of this stage of the session: when it must be established, and then what is sent."""
        self._sent = Sent.ALL
        """Where the bytes are that were sent last."""
        self._socket: ITCPTransport

    @property
    def setup_step(self) -> str:
        """What is awaited of the host before it takes mail."""
        if self.state is _CONNECTING:
            return "the connection"
        return _SETUP_STEPS.get(self.client.state, "its turn")

    def _make_engine(self, name: bytes, use: TlsUse, *, wants_auth: bool) -> SessionEngine:
        """The engine of this session, which is all that the constructor makes of it."""
        return SessionEngine(self, name, self._quirks.needs_helo, use, wants_auth)

    # ------------------------------------------------------------------ called by Twisted

    def connectionMade(self) -> None:
        assert self.transport is not None
        transport: ITCPTransport = self.transport  # type: ignore[assignment]  # Twisted types it by the widest interface
        self._socket = transport
        if self.state is _GONE:  # given up while it was connecting
            transport.abortConnection()
            return
        set_no_delay(transport)
        self.now = self._monotonic()
        self._await_greeting()
        if self.client.state is ClientState.HANDSHAKE:
            self.start_tls()

    def dataReceived(self, data: bytes) -> None:
        if self.state is _QUITTING:
            self._socket.loseConnection()
            return
        self.now = self._monotonic()
        if self.client.receive(data):
            self._extend()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._is_cut = True
        if self._auth is not None and self._auth.is_looking:
            return
        connection = self._tls
        is_early = self.state is _GREETING and not self._is_authenticating
        if is_early and connection is not None and connection.is_broken(reason):
            self.client.tls_failed(connection.failure_of(connection.transport.explain_failure(reason)))
        is_flooded = connection is not None and connection.transport.is_flooded
        self._end(FLOODED if is_flooded else b"connection lost")

    # ------------------------------------------------------------------ called by TLS

    def handshake_completed(self, tls: bytes) -> None:
        """See `net.tls.TlsSession`."""
        connection = self._tls
        if self.state is not _HANDSHAKE or connection is None:
            return
        self.now = self._monotonic()
        failure = connection.find_failure()
        if failure is not None:
            self.client.tls_failed(failure)
            return
        self.fields = LogFields.of_tls(self.connection.host.profile.level.value.encode("ascii"))
        self._await_greeting()
        self._owner.tls_established(self, is_resumed=connection.transport.is_resumed)
        self.client.tls_started()

    def handshake_failed(self, why: bytes) -> None:
        """See `net.tls.TlsSession`."""
        connection = self._tls
        if self.state is _HANDSHAKE and connection is not None:
            self.now = self._monotonic()
            self._owner.tls.forget(connection)
            self.client.tls_failed(connection.failure_of(why))

    # ------------------------------------------------------------------ called by the owner

    def extend_deadlines(self, seconds: float) -> None:
        """Extend the deadlines: the process did not run for so long, and a reply may wait in the socket."""
        self.deadline += seconds
        self._cap += seconds

    def on_deadline(self) -> None:
        """Act on the passed deadline."""
        if self.state is _IDLE:
            self.quit()
            return
        if self.state is _CONNECTING:
            self._owner.session_failed(self, Reply(451, b"4.4.1", b"connect timed out"))
        elif self._auth is not None:
            self._auth.stop_looking()
        self.give_up(b"timed out")

    def quit(self) -> None:
        """Send QUIT; no transaction is under way. RFC 5321 4.1.1.10 asks a client to wait for the reply where it can: a slow
        host would keep a worker for that time that other mail waits for."""
        self.state = _QUITTING
        self.deadline = self._monotonic() + QUIT_S
        self.client.quit()
        self._owner.session_left(self)
        if self._owner.is_worker_wanted(self):
            self._socket.loseConnection()

    def give_up(self, why: bytes) -> None:
        """End it now; the engine decides about an open transaction."""
        self._end(why)
        if self.transport is not None:
            self._socket.abortConnection()

    # ------------------------------------------------------------------ called by the engine

    def send(self, parts: Sequence[bytes]) -> None:
        self._sent = send_now(self._socket, parts)

    def start_tls(self) -> None:
        is_first = self.client.opening.use is TlsUse.FROM_START
        if not is_first and has_plain_bytes(self._socket):
            self.client.tls_failed(TlsFailure(TlsFault.INJECTED))
            return
        self.state = _HANDSHAKE
        self.deadline = self.now + self._settings.timeout_connect_s
        self._tls = self._owner.tls.begin(self._socket, self, self.connection.host.profile, self._found, self.now)
        self._socket = self._tls.transport

    def start_auth(self) -> None:
        auth, tls = self._auth, self._tls
        assert auth is not None
        if tls is None or not self.fields.tls:
            raise ProtocolError("credentials are shown over TLS alone")
        self._is_authenticating = True
        binding = channel_binding(tls.transport.getHandle())  # type: ignore[no-untyped-call]  # Twisted's
        auth.begin(self.client.opening.offers.auth, None if binding is None else ChannelBinding(*binding))

    def on_auth_reply(self, code: int, raw: bytes) -> None:
        assert self._auth is not None
        self._auth.on_reply(code, raw)

    def on_ready(self) -> None:
        self._establish()
        self.quit()

    def on_unusable(self, reply: Reply) -> None:
        auth = self._auth
        if auth is not None and self._is_authenticating and self.auth_failure is None:
            if auth.is_looking:
                return  # the end comes with what is found
            self.auth_failure = auth.failure_when_lost(reply.text)
        self._fail(reply)

    def on_end(self, why: bytes) -> None:
        if self._auth is None or not self._auth.is_looking:
            self._leave()
        self._socket.abortConnection()

    # ------------------------------------------------------------------ called by the authentication

    def send_auth(self, line: bytes | bytearray) -> None:
        """See `authentication.attempt.AuthOwner`."""
        self.client.send_auth(line)

    def on_authenticated(self) -> None:
        """See `authentication.attempt.AuthOwner`."""
        assert self._auth is not None
        self._is_authenticating = False
        self.fields = self.fields.plus(b", sasl=" + self._auth.identity)
        self._owner.session_authenticated(self)
        self.client.authenticated()

    def on_not_authenticated(self, failure: AuthFailure) -> None:
        """See `authentication.attempt.AuthOwner`."""
        self.now = self._monotonic()
        self.auth_failure = failure
        self.client.lost(b"not authenticated", failure.reply)
        if self.state is not _GONE:  # the connection ended while the file was looked at
            self._fail(failure.reply)

    # ------------------------------------------------------------------ internal

    def _await_greeting(self) -> None:
        """Begin a stage in which greeting and EHLO, or EHLO again, are awaited."""
        self.state = _GREETING
        self._cap = self.now + SETUP_STEPS * self._timeout_s
        self.deadline = self.now + self._timeout_s

    def _establish(self) -> None:
        """Greeting and EHLO succeeded."""
        if self._tls is not None:
            self._owner.tls.keep(self._tls, self.now)
        self._owner.session_established(self)

    def _extend(self) -> None:
        """Extend the deadline: the session has moved."""
        if self.state is _GREETING:
            self.deadline = min(self.now + self._timeout_s, self._cap)

    def _fail(self, reply: Reply) -> None:
        """Leave: there is no session."""
        self._owner.session_failed(self, reply)
        self._leave()
        if self.transport is not None and not self._is_cut:
            self._socket.abortConnection()

    def _end(self, why: bytes) -> None:
        if self.state not in (_CONNECTING, _QUITTING, _GONE):
            self.client.lost(why)
        self._leave()

    def _leave(self) -> None:
        """Leave the owner's books, whenever the socket closes. Harmless when repeated."""
        state, self.state = self.state, _GONE
        if self._auth is not None:
            self._auth.close()
        if state is not _GONE:
            self._give_back()
            self._remember_quirks()
            if state is not _QUITTING:
                self._owner.session_left(self)
            self._owner.session_closed(self)

    def _give_back(self) -> None:
        """The session ends: there is no mail to be given back."""

    def _found_pipelining(self) -> Pipelining:
        """What the session found out of the host's pipelining: nothing."""
        return self._quirks.pipelining

    def _remember_quirks(self) -> None:
        """Remember the quirks that this session found."""
        quirks = HostQuirks(self._found_pipelining(), self.client.opening.needs_helo)
        if quirks == self._quirks:
            return
        self._owner.quirks.note(self._host, quirks, self._monotonic())
        if quirks.pipelining is self._quirks.pipelining:
            pass
        elif quirks.pipelining is Pipelining.DOUBTED:
            self._log.info(
                "Trouble while commands were sent ahead to {host}: steps are tried", host=self.label.decode("ascii")
            )
        elif quirks.pipelining is Pipelining.BROKEN:
            self._log.info(
                "Nothing is sent ahead to {host} for a while: its PIPELINING does not work", host=self.label.decode("ascii")
            )
