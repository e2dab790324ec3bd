"""One session over a socket: Twisted's transport around the client engine, and its deadlines.

*Rules*:
- Each session has one deadline, a number that the tick of `sessions` compares (no timer for each). A complete reply or a
  sent piece of content extends it; a single byte of a reply never does.
- After the final dot `timeout_final` applies, once. Before it the transaction as a whole has a time limit, and so have
  greeting, EHLO and HELO together.
- Memory is bounded: the next piece of content is fetched when no bytes wait in the transport.
- A message that the host can't take, by its EHLO reply, fails without a transaction. One that it gets as 7-bit content
  (`conversion`) waits in the session until its form is known; nothing else begins meanwhile.
- Quirks of the host that a session finds are remembered (`quirks`).
- A TLS handshake has `timeout_connect`, whatever comes meanwhile. No byte is a reply before it is over. What a host says in
  terms of TLS before its first reply over it belongs to the handshake: with TLS 1.3 that is how it refuses our certificate.
- Credentials are shown over TLS alone (`authentication`), within the time limit of greeting and EHLO.

*Not here*: reading content in pieces (`content`), the choice of the next job, the consequences of an outcome (`sessions`,
`settling`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Protocol as Seam

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import ClientSettings
from mailismus.deliver.authentication.attempt import AuthAttempt
from mailismus.deliver.authentication.failure import AuthFailure
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.capabilities import ALL_CAPABILITIES, HostCapabilities
from mailismus.deliver.content import PieceReader
from mailismus.deliver.conversion import UNREADABLE, Conversions, ConvertedContent, SevenBitForm, convert
from mailismus.deliver.job import Job
from mailismus.deliver.quirks import HostQuirks, QuirkMemory
from mailismus.deliver.schedule.destination import FoundHost
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.smtputf8 import UTF8_RECIPIENT, to_ascii_envelope
from mailismus.deliver.tls_clients import TlsClients, TlsConnection
from mailismus.errors import ProtocolError, StorageError
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.net.channel_binding import channel_binding
from mailismus.net.peer import set_no_delay
from mailismus.net.send import Sent, send_now, when_drained
from mailismus.net.tls_client import has_plain_bytes
from mailismus.queue.interface import IContent
from mailismus.smtp.auth.scram import ChannelBinding
from mailismus.smtp.client.engine import ClientEngine
from mailismus.smtp.client.pipelining import Pipelining
from mailismus.smtp.client.starttls import TlsFailure, TlsFault, TlsUse
from mailismus.smtp.client.state import ClientState
from mailismus.smtp.client.transaction import Phase

QUIT_S = 5.0
"""How long the host may take to close the connection after QUIT."""
SLOW_REPLY_S = 1.0
"""A host that takes this long for its final reply gets nothing pipelined behind it: nothing would be gained."""
SLOWEST_BYTES_S = 1000
"""Lowest rate of content: a transaction's size extends its time limit by this."""

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


# Read for each event: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_CONNECTING, _GREETING, _BUSY = ClientSessionState.CONNECTING, ClientSessionState.GREETING, ClientSessionState.BUSY
_IDLE, _QUITTING, _GONE = ClientSessionState.IDLE, ClientSessionState.QUITTING, ClientSessionState.GONE
_HANDSHAKE, _OVER = ClientSessionState.HANDSHAKE, Phase.OVER
_WAITING = Sent.WAITING


class ClientSessionOwner(Seam):
    """The owner of all sessions, as one session uses it."""

    monotonic: Callable[[], float]
    quirks: QuirkMemory
    tls: TlsClients
    conversions: Conversions
    secrets: Secrets
    max_idle_s: float
    """How long a session stays open without work."""

    def tls_established(self, session: ClientSession, *, is_resumed: bool) -> None:
        """Note that TLS is established, as its profile demands."""

    def session_authenticated(self, session: ClientSession) -> None:
        """Note that a host accepted the credentials."""

    def session_established(self, session: ClientSession) -> None:
        """Note that greeting and EHLO succeeded."""

    def next_job(self, session: ClientSession, now: float, *, is_ahead: bool = False) -> Job | None:
        """The next job for its host, or None: the session becomes idle or ends. `now`: monotonic seconds. `is_ahead`: the
        job is pipelined behind a final dot."""

    def keep_idle(self, session: ClientSession) -> bool:
        """Keep an idle session for later jobs. False: it must end."""

    def settle(self, session: ClientSession, job: Job, reply: Reply) -> None:
        """Settle the rest of a job with this reply."""

    def settle_refused(self, session: ClientSession, job: Job, position: int, reply: Reply) -> None:
        """Settle one refused recipient."""

    def settle_some(self, session: ClientSession, job: Job, positions: Sequence[int], reply: Reply) -> None:
        """Settle the recipients of a job at these positions with this reply, before it begins; others are left."""

    def put_back(self, session: ClientSession, job: Job) -> None:
        """Take back the rest of a job, which was not tried."""

    def session_failed(self, session: ClientSession, reply: Reply) -> None:
        """Note that no session was established."""

    def session_left(self, session: ClientSession) -> None:
        """Note that it takes no more jobs: it sent QUIT, or its connection is gone. Called once for each session."""

    def session_closed(self, session: ClientSession) -> None:
        """Note that its connection is closed or being aborted. Called once for each session, after `session_left`."""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """Read a message, as `DeliveryQueue.read`."""


class ClientSession(Protocol):
    """The session over one connection."""

    _log = Logger()

    def __init__(
        self,
        owner: ClientSessionOwner,
        connection: Connection,
        found: FoundHost,
        label: bytes,
        name: bytes,
        settings: ClientSettings,
    ) -> None:
        """`found`: the host as it was found first; `label`: as logged behind `relay=`; `name`: ours."""
        self._owner = owner
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
        self._quirks = quirks = owner.quirks.of(self._host, self.opened_at)
        use = owner.tls.use_of(host.profile, self._host, self.opened_at)
        credentials = host.profile.credentials
        self.client: ClientEngine[Job] = ClientEngine(
            self, name, settings.maxpipeline, quirks.pipelining, quirks.needs_helo, use, credentials is not None
        )
        self._auth: AuthAttempt | None = None
        if credentials is not None:
            self._auth = AuthAttempt(self, credentials, owner.secrets, label)
        self._is_authenticating = self._is_cut = False
        self.auth_failure: AuthFailure | None = None
        """Why the session was not authenticated, where that ended it."""
        self._found = found
        self._tls: TlsConnection | None = None
        self.tls = b""
        """The level that was met over TLS; empty: there is no TLS."""
        self._capabilities = ALL_CAPABILITIES
        self.setup_s = 0.0
        """Duration of connection, greeting and EHLO; 0 once it was charged to a job."""
        self.deadline = self.opened_at + settings.timeout_connect_s + 1
        self._dot_at = 0.0
        self._reply_s = 0.0
        """Moving average of the time to a final reply."""
        self._cap = 0.0
        """When the newest transaction must have sent its final dot; before the first: when the session must be
        established."""
        self._timeout_s, self._final_s = settings.timeout_s, settings.timeout_final_s
        self._steps_s = 3 * settings.timeout_s + settings.timeout_final_s
        self._pieces: PieceReader | None = None
        """Reads the content that is sent in pieces."""
        self._converting: Job | None = None
        """The job whose message is converted, or was converted; its transaction is the next one."""
        self._is_asking = False
        """Whether the form of a message is asked for now."""
        self._sent = Sent.ALL
        """Where the bytes are that were sent last."""
        self._socket: ITCPTransport

    @property
    def underway(self) -> list[Job]:
        """Jobs that have begun over it, or whose messages are converted for its host."""
        jobs = self.client.underway
        return jobs if self._converting is None else [*jobs, self._converting]

    # ------------------------------------------------------------------ called by Twisted

    def connectionMade(self) -> None:
        assert self.transport is not None
        transport: ITCPTransport = self.transport  # type: ignore[assignment]  # Twisted types it by the widest interface
        self._socket = transport
        if self.state is _GONE:  # given up while it was connecting
            transport.abortConnection()
            return
        set_no_delay(transport)
        self.state = _GREETING
        now = self.now = self._monotonic()
        self._cap = now + SETUP_STEPS * self._settings.timeout_s
        self.deadline = now + self._settings.timeout_s
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
        self._end(b"connection lost")

    # ------------------------------------------------------------------ called by TLS

    def handshake_completed(self, tls: bytes) -> None:
        """See `net.tls.TlsSession`."""
        connection = self._tls
        if self.state is not _HANDSHAKE or connection is None:
            return
        now = self.now = self._monotonic()
        failure = connection.find_failure()
        if failure is not None:
            self.client.tls_failed(failure)
            return
        self.state = _GREETING
        self.tls = self.connection.host.profile.level.value.encode("ascii")
        self._cap = now + SETUP_STEPS * self._settings.timeout_s
        self.deadline = now + self._settings.timeout_s
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

    def begin(self) -> None:
        """Ask for the next job and begin it, if the session is idle. Without one it stays so or ends. A busy session asks by
        itself when its transaction ends: two that begin at once would mix."""
        if self.state is not _IDLE:
            return
        self.now = self._monotonic()
        self._go_on()
        self._extend()

    def drop_conversion(self) -> bool:
        """Give back the job whose message is converted: settings change. Return whether nothing is under way now: `begin`
        follows."""
        if self._converting is None:
            return False
        self._put_back_converting()
        if not self.client.is_idle:
            return False
        self.state = _IDLE
        return True

    def extend_deadlines(self, seconds: float) -> None:
        """Extend the deadlines: the process did not run for so long, and a reply may wait in the socket."""
        self.deadline += seconds
        self._cap += seconds

    def on_deadline(self) -> None:
        """Act on the passed deadline."""
        if self.state is _IDLE:
            self.quit()
        else:
            if self.state is _CONNECTING:
                self._owner.session_failed(self, Reply(451, b"4.4.1", b"connect timed out"))
            elif self._auth is not None:
                self._auth.stop_looking()
            self.give_up(b"timed out")

    def quit(self) -> None:
        """Send QUIT; no transaction is under way."""
        self.state = _QUITTING
        self.deadline = self._monotonic() + QUIT_S
        self.client.quit()
        self._owner.session_left(self)

    def give_up(self, why: bytes) -> None:
        """End it now; the engine decides about an open transaction."""
        self._end(why)
        if self.transport is not None:
            self._socket.abortConnection()

    def cut_off(self) -> None:
        """Stop: begin nothing, put back a transaction before its final dot, wait for one after it."""
        if self.state is _IDLE:
            self.quit()
            self._socket.loseConnection()
        elif self.state in (_CONNECTING, _GREETING, _HANDSHAKE, _BUSY):
            self._put_back_converting()
            waits = self.client.cut_off()
            self._stop_reading()
            if not waits:
                self._leave()
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
        if tls is None or not self.tls:
            raise ProtocolError("credentials are shown over TLS alone")
        self._is_authenticating = True
        binding = channel_binding(tls.transport.getHandle())  # type: ignore[no-untyped-call]  # Twisted's
        auth.begin(self.client.opening.offers.auth, None if binding is None else ChannelBinding(*binding))

    def on_auth_reply(self, code: int, raw: bytes) -> None:
        assert self._auth is not None
        self._auth.on_reply(code, raw)

    def on_ready(self) -> None:
        if self.state is _GREETING:
            self._set_up()
        self._go_on()

    def _go_on(self) -> None:
        """Begin the next job, or become idle, or end."""
        job = self._next_job(is_ahead=False)
        if job is not None:
            self.state = _BUSY
            self.client.begin(job)
        elif self._converting is not None:
            self.state = _BUSY
            self._cap = self.deadline = self.now + self._timeout_s
        elif self._owner.keep_idle(self):
            self.state = _IDLE
            self.deadline = self.now + self._owner.max_idle_s
        else:
            self.quit()

    def next_transaction(self) -> Job | None:
        self._dot_at = self.now
        return self._next_job(is_ahead=True) if self._reply_s < SLOW_REPLY_S else None

    def content_of(self, transaction: Job) -> bytes | None:
        form = transaction.form
        try:
            content = self._owner.read(transaction.message.spool_id)
            if isinstance(content, bytes):
                return content if form is None else convert(content, form.plan)
        except StorageError:
            self.client.spoil_content(UNREADABLE)
            return None
        if form is not None:
            content.addCallback(ConvertedContent, form.plan)
        content.addCallbacks(self._on_content, self._on_not_opened)
        return None

    def on_refused(self, transaction: Job, position: int, reply: Reply) -> None:
        self._owner.settle_refused(self, transaction, position, reply)

    def on_finished(self, transaction: Job, reply: Reply) -> None:
        if self._dot_at and transaction.phase is _OVER:
            self._reply_s += (self.now - self._dot_at - self._reply_s) / 4
            self._dot_at = 0.0
        self._owner.settle(self, transaction, reply)

    def on_untried(self, transaction: Job) -> None:
        self._owner.put_back(self, transaction)

    def on_unusable(self, reply: Reply) -> None:
        auth = self._auth
        if auth is not None and self._is_authenticating and self.auth_failure is None:
            if auth.is_looking:
                return  # the end comes with what is found
            self.auth_failure = auth.failure_when_lost(reply.text)
        self._fail(reply)

    def _fail(self, reply: Reply) -> None:
        """Leave: there is no session."""
        self._owner.session_failed(self, reply)
        self._leave()
        if self.transport is not None and not self._is_cut:
            self._socket.abortConnection()

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
        self._is_authenticating = False
        self._owner.session_authenticated(self)
        self.client.authenticated()

    def on_not_authenticated(self, failure: AuthFailure) -> None:
        """See `authentication.attempt.AuthOwner`."""
        self.now = self._monotonic()
        self.auth_failure = failure
        self.client.lost(b"not authenticated", failure.reply)
        if self.state is not _GONE:  # the connection ended while the file was looked at
            self._fail(failure.reply)

    # ------------------------------------------------------------------ content in pieces

    def on_piece(self, piece: bytes) -> bool:
        """See `content.PieceOwner`."""
        self.now = self._monotonic()
        self._extend()
        self.client.send_piece(piece)
        if self._sent is not _WAITING:
            return True
        when_drained(self._socket, self._on_room)
        return False

    def on_last_piece(self) -> None:
        """See `content.PieceOwner`."""
        self.now = self._monotonic()
        self._pieces = None
        self.client.end_content()
        self._extend()

    def on_unreadable(self) -> None:
        """See `content.PieceOwner`."""
        self._pieces = None
        if self.state is _BUSY:
            self.client.spoil_content(UNREADABLE)

    def _on_room(self) -> None:
        """No bytes wait in the transport any more."""
        if self._pieces is not None:
            self._pieces.fetch()

    def _on_content(self, content: IContent) -> None:
        if self.state is _BUSY:
            self._pieces = PieceReader(self, content)
            self._pieces.fetch()
        else:
            content.close()

    def _on_not_opened(self, failure: Failure) -> None:
        failure.trap(StorageError)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self.on_unreadable()

    def _stop_reading(self) -> None:
        pieces, self._pieces = self._pieces, None
        if pieces is not None:
            pieces.close()

    # ------------------------------------------------------------------ internal

    def _set_up(self) -> None:
        """Begin to work: greeting and EHLO succeeded."""
        self.setup_s = self.now - self.opened_at
        self.state = _BUSY
        self._capabilities = HostCapabilities(self.client.opening.offers, self._settings.eightbit)
        if self._tls is not None:
            self._owner.tls.keep(self._tls, self.now)
        self._owner.session_established(self)

    def _next_job(self, *, is_ahead: bool) -> Job | None:
        """Ask for the next job that the host takes. None: there is none, or its message is converted first."""
        job = self._converting
        if job is not None:
            if job.form is None:
                return None
            self._converting = None
            self._charge(job)
            return job
        while (job := self._owner.next_job(self, self.now, is_ahead=is_ahead)) is not None:
            if (self._capabilities.takes_all and not job.utf8) or self._takes(job):
                self._charge(job)
                return job
            if self._converting is not None:
                return None
        return None

    def _takes(self, job: Job) -> bool:
        """Whether the host takes such a message as it is; if not, settle the job, or begin to convert its message."""
        if self._refuse(job, self._capabilities.refusal(job.size_bytes, job.eightbit)):
            return False
        if job.utf8 and not self._capabilities.takes_utf8 and not self._write_in_ascii(job):
            return False
        return not self._capabilities.must_convert(job.eightbit) or self._convert(job)

    def _write_in_ascii(self, job: Job) -> bool:
        """Write the envelope of a job in ASCII. Return whether any recipient is left; the others are settled."""
        found = to_ascii_envelope(job.message.words, job.sender, job.recipients)
        if isinstance(found, Reply):
            return not self._refuse(job, found)
        sender, recipients = found
        positions = [position for position, recipient in enumerate(recipients) if recipient is None]
        if positions:
            job.begin(self.now, self.tls)
            self._owner.settle_some(self, job, positions, UTF8_RECIPIENT)
        job.take_addresses(sender, recipients)
        return True

    def _refuse(self, job: Job, reply: Reply | None) -> bool:
        """Settle a job with this reply, if there is one. Return whether there is."""
        if reply is not None:
            job.begin(self.now, self.tls)
            self._owner.settle(self, job, reply)
        return reply is not None

    def _convert(self, job: Job) -> bool:
        """Ask for the 7-bit form of a job's message. Return whether it is known at once and the host takes it."""
        self._converting, self._is_asking = job, True
        self._owner.conversions.find(job.message.spool_id).addCallback(self._on_form, job)
        self._is_asking = False
        if self._converting is not job or job.form is None:
            return False
        self._converting = None
        return True

    def _on_form(self, found: SevenBitForm | Reply, job: Job) -> None:
        """Take the 7-bit form of a message, or why there is none."""
        if self._converting is not job:
            return  # the session ended meanwhile
        if not self._is_asking:
            self.now = self._monotonic()
        reply = found if isinstance(found, Reply) else self._capabilities.refusal(found.size_bytes, False)
        if self._refuse(job, reply):
            self._converting = None
        elif isinstance(found, SevenBitForm):
            job.take_form(found)
        if not self._is_asking and self.client.is_idle:
            self._go_on()
            self._extend()

    def _put_back_converting(self) -> None:
        """Give a job back whose message is converted: the session ends."""
        job, self._converting = self._converting, None
        if job is not None:
            self._owner.put_back(self, job)

    def _remember_quirks(self) -> None:
        """Remember the quirks that this session found."""
        quirks = HostQuirks(self.client.trust.known, self.client.opening.needs_helo)
        if quirks == self._quirks:
            return
        now = self._monotonic()
        self._owner.quirks.note(self._host, quirks, now)
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

    def _charge(self, job: Job) -> None:
        now, message = self.now, job.message
        self._cap = now + self._steps_s + (message.size_bytes + message.stuffed_dots) / SLOWEST_BYTES_S
        job.begin(now, self.tls)
        if self.setup_s:
            job.charge(min(self.setup_s, max(0.0, now - job.queued_at)))
            self.setup_s = 0.0

    def _extend(self) -> None:
        if self.state is not _BUSY and self.state is not _GREETING:
            return
        if self.client.waits_for_final:
            self.deadline = self.now + self._final_s
        else:
            deadline = self.now + self._timeout_s
            self.deadline = deadline if deadline < self._cap else self._cap

    def _end(self, why: bytes) -> None:
        if self.state in (_GREETING, _HANDSHAKE, _BUSY, _IDLE):
            self.client.lost(why)
        self._leave()

    def _leave(self) -> None:
        """Leave the owner's books, whenever the socket closes. Harmless when repeated."""
        state, self.state = self.state, _GONE
        self._stop_reading()
        if self._auth is not None:
            self._auth.close()
        if state is not _GONE:
            self._put_back_converting()
            self._remember_quirks()
            if state is not _QUITTING:
                self._owner.session_left(self)
            self._owner.session_closed(self)
