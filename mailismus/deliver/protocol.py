"""One session over a socket: Twisted's transport around the client engine, its deadlines, and content that comes in pieces.

*Rules*: there is one deadline a session, a number that the sessions' tick compares (no timer for each): it moves when a
whole reply came or a piece of content went out, never with a byte of a reply. After the final dot `timeout_final` counts,
once; up to it a transaction has a time in all, whatever its steps take, and so have greeting, EHLO and HELO together.
Everything waits in bounded memory: the next piece of content is fetched when the transport has room. A message that the
host can't take, by what it said to EHLO, fails without a transaction. What a session learns of its host is remembered
(`habits`).

*Not here*: which job comes next, what an outcome leads to (`sessions`, `settling`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Protocol as Seam

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IPullProducer, ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.config.values.settings import ClientSettings
from mailismus.deliver.habits import Habit, Habits
from mailismus.deliver.job import Job
from mailismus.deliver.objection import NO_OBJECTIONS, Objections
from mailismus.deliver.schedule import Hop
from mailismus.errors import StorageError
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.net.peer import set_no_delay
from mailismus.net.send import send_now
from mailismus.queue.interface import IContent
from mailismus.smtp.client import ClientEngine
from mailismus.smtp.client_transaction import Phase
from mailismus.smtp.pipelining import Pipelining

QUIT_S = 5.0
"""How long the other side may take to close after QUIT."""
IDLE_S = 5.0
"""How long a session is kept without work."""
SLOWEST_BYTES_S = 1000
"""What a transaction's content counts for, beyond its time for steps."""

SETUP_STEPS = 2
"""Greeting, EHLO and HELO may take `timeout` each, and together so many times that."""

UNREADABLE = Reply(451, b"4.3.0", b"the message can't be read now")


class ClientSessionState(enum.Enum):
    """What a session is doing."""

    CONNECTING = "connecting"
    GREETING = "greeting"
    """Greeting and EHLO are under way."""
    BUSY = "busy"
    IDLE = "idle"
    QUITTING = "quitting"
    GONE = "gone"


class Keeper(Seam):
    """What a session calls: the keeper of all sessions."""

    monotonic: Callable[[], float]
    habits: Habits

    def session_stands(self, session: ClientSession) -> None:
        """Greeting and EHLO went well."""

    def next_job(self, session: ClientSession) -> Job | None:
        """The next job of its next hop, or None: it goes idle or ends."""

    def next_behind(self, session: ClientSession) -> Job | None:
        """The next job, to travel behind a final dot."""

    def may_idle(self, session: ClientSession) -> bool:
        """Whether an idle session is worth keeping."""

    def settle(self, session: ClientSession, job: Job, reply: Reply) -> None:
        """All that is left of a job has this reply."""

    def settle_refused(self, session: ClientSession, job: Job, position: int, reply: Reply) -> None:
        """One recipient was refused."""

    def put_back(self, session: ClientSession, job: Job) -> None:
        """All that is left of a job was not tried."""

    def session_failed(self, session: ClientSession, reply: Reply) -> None:
        """No session could be had."""

    def session_left(self, session: ClientSession) -> None:
        """It takes no more jobs: it said QUIT, or its connection is gone. Once for each."""

    def session_closed(self, session: ClientSession) -> None:
        """Its connection is gone, or as good as gone. Once for each, never before `session_left`."""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """As the queue's `read`."""


@implementer(IPullProducer)
class ClientSession(Protocol):
    """One connection to one host of a next hop."""

    _log = Logger()

    def __init__(
        self,
        keeper: Keeper,
        hop: Hop[ClientSession],
        host_name: str,
        address: str,
        name: bytes,
        settings: ClientSettings,
    ) -> None:
        """`host_name`: of the host, as it was found; `name`: ours."""
        self._keeper = keeper
        self._settings = settings
        self._monotonic = keeper.monotonic
        self.hop = hop
        self.address = address
        next_hop = hop.next_hop
        self.label = f"{host_name}[{address}]:{next_hop.port}".encode("ascii", "replace")
        """The host as logged behind `relay=`."""
        self.state = ClientSessionState.CONNECTING
        self.opened_at = self._monotonic()
        self._host = (address, next_hop.port)
        self._habit = habit = keeper.habits.of(self._host, self.opened_at)
        self.client: ClientEngine[Job] = ClientEngine(self, name, settings.maxpipeline, habit.pipelining, habit.needs_helo)
        self._objections = NO_OBJECTIONS
        self.setup_s = 0.0
        """How long connection, greeting and EHLO took; 0 once a job has been charged with it."""
        self.begun = 0
        """Transactions begun."""
        self.deadline = self.opened_at + settings.timeout_connect_s + 1
        self._dot_at = 0.0
        self._cap = 0.0
        """When the newest transaction must have its final dot behind it; before the first: when the session must stand."""
        self._steps_s = 3 * settings.timeout_s + settings.timeout_final_s
        self._content: IContent | None = None
        self._is_reading = False
        self._socket: ITCPTransport
        self._consumer: IConsumer

    # ------------------------------------------------------------------ Twisted's

    def connectionMade(self) -> None:
        assert self.transport is not None
        transport: ITCPTransport = self.transport  # type: ignore[assignment]  # Twisted types it by the widest interface
        self._socket = transport
        self._consumer = self.transport  # type: ignore[assignment]  # TCP transports are consumers too; no interface says so
        if self.state is ClientSessionState.GONE:  # given up while it was being made
            transport.abortConnection()
            return
        set_no_delay(transport)
        self.state = ClientSessionState.GREETING
        now = self._monotonic()
        self._cap = now + SETUP_STEPS * self._settings.timeout_s
        self.deadline = now + self._settings.timeout_s

    def dataReceived(self, data: bytes) -> None:
        if self.state is ClientSessionState.QUITTING:
            self._socket.loseConnection()
        elif self.client.receive(data):
            self._extend()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._end(b"connection lost")

    # ------------------------------------------------------------------ the keeper's

    def begin(self, job: Job) -> None:
        """An idle session gets work."""
        self.state = ClientSessionState.BUSY
        if self._takes(job):
            self._charge(job)
            self.client.begin(job)
        else:
            self.on_ready()
        self._extend()

    def stood_still(self, seconds: float) -> None:
        """Nothing of ours ran for so long: this time is not the host's, whose reply may wait unread."""
        self.deadline += seconds
        self._cap += seconds

    def on_deadline(self) -> None:
        """The deadline has passed."""
        if self.state is ClientSessionState.IDLE:
            self.quit()
        else:
            if self.state is ClientSessionState.CONNECTING:
                self._keeper.session_failed(self, Reply(451, b"4.4.1", b"connect timed out"))
            self.give_up(b"timed out")

    def quit(self) -> None:
        """End it in good order, while nothing is under way."""
        self.state = ClientSessionState.QUITTING
        self.deadline = self._monotonic() + QUIT_S
        self.client.quit()
        self._keeper.session_left(self)

    def give_up(self, why: bytes) -> None:
        """End it now; what is open is decided by the engine's rules."""
        self._end(why)
        if self.transport is not None:
            self._socket.abortConnection()

    def cut_off(self) -> None:
        """Stop: nothing is begun, what is before its final dot is put back, what is behind it is waited for."""
        if self.state is ClientSessionState.IDLE:
            self.quit()
            self._socket.loseConnection()
        elif self.state in (ClientSessionState.CONNECTING, ClientSessionState.GREETING, ClientSessionState.BUSY):
            waits = self.client.cut_off()
            self._stop_reading()
            if not waits:
                self._leave()
                if self.transport is not None:
                    self._socket.abortConnection()

    # ------------------------------------------------------------------ the engine's

    def send(self, parts: Sequence[bytes]) -> None:
        if self._content is None:
            send_now(self._socket, parts)
        else:
            self._socket.writeSequence(parts)  # the usual way, which asks for more when there is room

    def on_ready(self) -> None:
        if self.state is ClientSessionState.GREETING:
            self._set_up()
        job = self._keeper.next_job(self)
        while job is not None and not self._takes(job):
            job = self._keeper.next_job(self)
        if job is not None:
            self._charge(job)
            self.client.begin(job)
        elif self._keeper.may_idle(self):
            self.state = ClientSessionState.IDLE
            self.deadline = self._monotonic() + IDLE_S
            self.hop.idle.append(self)
        else:
            self.quit()

    def next_transaction(self) -> Job | None:
        self._dot_at = self._monotonic()
        job = self._keeper.next_behind(self)
        while job is not None and not self._takes(job):
            job = self._keeper.next_behind(self)
        if job is not None:
            self._charge(job)
        return job

    def content_of(self, transaction: Job) -> bytes | None:
        try:
            content = self._keeper.read(transaction.message.spool_id)
        except StorageError:
            self.client.spoil_content(UNREADABLE)
            return None
        if isinstance(content, bytes):
            return content
        self._is_reading = True  # first: the content may be there already, and `_on_content` says that nothing is read
        content.addCallbacks(self._on_content, self._on_trouble)
        return None

    def on_refused(self, transaction: Job, position: int, reply: Reply) -> None:
        self._keeper.settle_refused(self, transaction, position, reply)

    def on_finished(self, transaction: Job, reply: Reply) -> None:
        if self._dot_at and transaction.phase is Phase.OVER:
            self.hop.note_reply(self._monotonic() - self._dot_at)
            self._dot_at = 0.0
        self._keeper.settle(self, transaction, reply)

    def on_untried(self, transaction: Job) -> None:
        self._keeper.put_back(self, transaction)

    def on_unusable(self, reply: Reply) -> None:
        self._keeper.session_failed(self, reply)
        self._leave()
        if self.transport is not None:
            self._socket.abortConnection()

    def on_end(self, why: bytes) -> None:
        self._leave()
        self._socket.abortConnection()

    # ------------------------------------------------------------------ content in pieces

    def resumeProducing(self) -> None:
        """The transport has room for another piece."""
        if self._content is not None and not self._is_reading:
            self._is_reading = True
            self._content.next().addCallbacks(self._on_piece, self._on_trouble)

    def stopProducing(self) -> None:
        """The connection is gone; `connectionLost` follows."""

    def _on_content(self, content: IContent) -> None:
        self._is_reading = False
        if self.state is not ClientSessionState.BUSY:
            content.close()
            return
        self._content = content
        self._consumer.registerProducer(self, False)

    def _on_piece(self, piece: bytes) -> None:
        self._is_reading = False
        if self._content is None:
            return
        if piece:
            self._extend()
            self.client.send_piece(piece)
        else:
            self._stop_reading()
            self.client.end_content()
            self._extend()

    def _on_trouble(self, failure: Failure) -> None:
        failure.trap(StorageError)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self._is_reading = False
        if self.state is ClientSessionState.BUSY:
            self._stop_reading()
            self.client.spoil_content(UNREADABLE)

    def _stop_reading(self) -> None:
        content, self._content = self._content, None
        if content is not None:
            self._consumer.unregisterProducer()
            content.close()

    # ------------------------------------------------------------------ within

    def _set_up(self) -> None:
        """Greeting and EHLO went well."""
        self.setup_s = self._monotonic() - self.opened_at
        self.state = ClientSessionState.BUSY
        self._objections = Objections(self.client.opening.offers, self._settings.eightbit)
        self._keeper.session_stands(self)

    def _takes(self, job: Job) -> bool:
        """Whether the host takes such a message; if not, the job is settled."""
        reply = self._objections.to(job.size_bytes, job.eightbit)
        if reply is None:
            return True
        job.begin(self._monotonic())
        self._keeper.settle(self, job, reply)
        return False

    def _learn(self) -> None:
        """What this session has shown of its host is remembered."""
        habit = Habit(self.client.trust.known, self.client.opening.needs_helo)
        if habit == self._habit:
            return
        now = self._monotonic()
        self._keeper.habits.note(self._host, habit, now)
        if habit.pipelining is self._habit.pipelining:
            pass
        elif habit.pipelining is Pipelining.DOUBTED:
            self._log.info(
                "Trouble while commands were sent ahead to {host}: steps are tried", host=self.label.decode("ascii")
            )
        elif habit.pipelining is Pipelining.BROKEN:
            self._log.info(
                "Nothing is sent ahead to {host} for a while: its PIPELINING does not work", host=self.label.decode("ascii")
            )

    def _charge(self, job: Job) -> None:
        self.begun += 1
        now = self._monotonic()
        self._cap = now + self._steps_s + job.message.stored_bytes / SLOWEST_BYTES_S
        job.begin(now)
        if self.setup_s:
            job.charge(min(self.setup_s, max(0.0, now - job.queued_at)))
            self.setup_s = 0.0

    def _extend(self) -> None:
        if self.state is not ClientSessionState.BUSY and self.state is not ClientSessionState.GREETING:
            return
        if self.client.waits_for_final:
            self.deadline = self._monotonic() + self._settings.timeout_final_s
        else:
            self.deadline = min(self._monotonic() + self._settings.timeout_s, self._cap)

    def _end(self, why: bytes) -> None:
        if self.state in (ClientSessionState.GREETING, ClientSessionState.BUSY, ClientSessionState.IDLE):
            self.client.lost(why)
        self._leave()

    def _leave(self) -> None:
        """It takes no part any more, whenever the socket closes. Harmless when repeated."""
        state, self.state = self.state, ClientSessionState.GONE
        self._stop_reading()
        if state is not ClientSessionState.GONE:
            self._learn()
            if state is not ClientSessionState.QUITTING:
                self._keeper.session_left(self)
            self._keeper.session_closed(self)
