"""A session with a host that takes mail: one job after another, and the deadlines of transactions.

*Rules*:
- A complete reply or a sent piece of content extends the deadline. After the final dot `timeout_final` applies, once.
  Before it the transaction as a whole has a time limit.
- A message that the host can't take, by its EHLO reply, fails without a transaction. One that it gets as 7-bit content
  (`conversion`) waits in the session until its form is known; nothing else begins meanwhile.

*Not here*: the opening of a session (`host_session`), content in pieces (`content`), the choice of the next job, the
consequences of an outcome (`sessions`, `settling`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol as Seam

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from mailismus.config.values.settings import ClientSettings
from mailismus.deliver.jobs.conversion import UNREADABLE, Conversions, ConvertedContent, SevenBitForm, convert
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.jobs.smtputf8 import UTF8_RECIPIENT, to_ascii_envelope
from mailismus.deliver.schedule.destination import FoundHost
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.sessions.capabilities import ALL_CAPABILITIES, HostCapabilities
from mailismus.deliver.sessions.content import PieceReader
from mailismus.deliver.sessions.host_session import ClientSessionState, HostSession, HostSessionOwner
from mailismus.errors import StorageError
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.net.send import Sent, when_drained
from mailismus.queue.content import IContent
from mailismus.smtp.client.engine import ClientEngine
from mailismus.smtp.client.pipelining import Pipelining
from mailismus.smtp.client.starttls import TlsUse
from mailismus.smtp.client.transaction import Phase

SLOW_REPLY_S = 1.0
"""A host that takes this long for its final reply gets nothing pipelined behind it: nothing would be gained."""
SLOWEST_BYTES_S = 1000
"""Lowest rate of content: a transaction's size extends its time limit by this."""

CONVERTED = b", converted=7bit"
"""What the log says of a message that this host got as 7-bit content (`Job.fields`)."""

# Read for each event: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_GREETING, _BUSY, _IDLE = ClientSessionState.GREETING, ClientSessionState.BUSY, ClientSessionState.IDLE
_QUITTING, _GONE = ClientSessionState.QUITTING, ClientSessionState.GONE
_OVER, _WAITING = Phase.OVER, Sent.WAITING


class ClientSessionOwner(HostSessionOwner["ClientSession"], Seam):
    """The owner of all sessions, as one session uses it."""

    conversions: Conversions
    may_try: Callable[[SpoolId], bool]
    max_idle_s: float
    """How long a session stays open without work."""

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

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """Read a message, as `DeliveryQueue.read`."""


class ClientSession(HostSession):
    """The session over one connection."""

    _owner: ClientSessionOwner
    client: ClientEngine[Job]

    def __init__(
        self,
        owner: ClientSessionOwner,
        connection: Connection,
        found: FoundHost,
        label: bytes,
        name: bytes,
        settings: ClientSettings,
    ) -> None:
        """As `HostSession`."""
        super().__init__(owner, connection, found, label, name, settings)
        self._capabilities = ALL_CAPABILITIES
        self.setup_s = 0.0
        """Duration of connection, greeting and EHLO; 0 once it was charged to a job."""
        self._dot_at = 0.0
        self._reply_s = 0.0
        """Moving average of the time to a final reply."""
        self._final_s = settings.timeout_final_s
        self._steps_s = 3 * settings.timeout_s + settings.timeout_final_s
        self._pieces: PieceReader | None = None
        """Reads the content that is sent in pieces."""
        self._converting: Job | None = None
        """The job whose message is converted, or was converted; its transaction is the next one."""
        self._asked: Deferred[None] | None = None
        """The answer about its form."""
        self._is_asking = False
        """Whether the form of a message is asked for now."""

    def _make_engine(self, name: bytes, use: TlsUse, *, wants_auth: bool) -> ClientEngine[Job]:
        known, most = self._quirks, self._settings.maxpipeline
        return ClientEngine(self, name, most, known.pipelining, known.needs_helo, use, wants_auth)

    @property
    def underway(self) -> list[Job]:
        """Jobs that have begun over it, or whose messages are converted for its host."""
        jobs = self.client.underway
        return jobs if self._converting is None else [*jobs, self._converting]

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

    def cut_off(self) -> None:
        """Stop: begin nothing, put back a transaction before its final dot, wait for one after it."""
        if self.state is _IDLE:
            self.quit()
            self._socket.loseConnection()
        elif self.state is not _QUITTING and self.state is not _GONE:
            self._put_back_converting()
            waits = self.client.cut_off()
            self._stop_reading()
            if not waits:
                self._leave()
                if self.transport is not None:
                    self._socket.abortConnection()

    # ------------------------------------------------------------------ called by the engine

    def on_ready(self) -> None:
        if self.state is _GREETING:
            self._establish()
        self._go_on()

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
        if self.state is not _BUSY:
            content.close()
            return
        whole = content.at_hand
        if whole is None:
            self._pieces = PieceReader(self, content)
            self._pieces.fetch()
            return
        content.close()
        self.now = self._monotonic()
        self.client.send_content(whole)
        self._extend()

    def _on_not_opened(self, failure: Failure) -> None:
        failure.trap(StorageError)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self.on_unreadable()

    def _stop_reading(self) -> None:
        pieces, self._pieces = self._pieces, None
        if pieces is not None:
            pieces.close()

    # ------------------------------------------------------------------ the next job

    def _establish(self) -> None:
        """Begin to work."""
        self.setup_s = self.now - self.opened_at
        self.state = _BUSY
        self._capabilities = HostCapabilities(self.client.opening.offers, self._settings.eightbit)
        super()._establish()

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

    def _next_job(self, *, is_ahead: bool) -> Job | None:
        """Ask for the next job that the host takes, and begin to count its time. None: there is none, or its message is
        converted first."""
        job, fields = self._converting, self.fields
        if job is not None and job.form is not None and not self._owner.may_try(job.message.spool_id):
            self._put_back_converting()  # the owner is asked about it again
            job = None
        if job is not None:
            if job.form is None:
                return None
            self._converting = None
            fields = fields.plus(CONVERTED)
        else:
            while (job := self._owner.next_job(self, self.now, is_ahead=is_ahead)) is not None:
                if self._capabilities.takes_all and not job.utf8:
                    break
                if self._takes(job):
                    if job.form is not None:
                        fields = fields.plus(CONVERTED)
                    break
                if self._converting is not None:
                    return None
            if job is None:
                return None
        now, message = self.now, job.message
        self._cap = now + self._steps_s + (message.size_bytes + message.stuffed_dots) / SLOWEST_BYTES_S
        job.begin(now, fields)
        if self.setup_s:
            job.charge(min(self.setup_s, max(0.0, now - job.queued_at)))
            self.setup_s = 0.0
        return job

    # ------------------------------------------------------------------ what the host takes

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
            job.begin(self.now, self.fields)
            self._owner.settle_some(self, job, positions, UTF8_RECIPIENT)
        job.take_addresses(sender, recipients)
        return True

    def _refuse(self, job: Job, reply: Reply | None) -> bool:
        """Settle a job with this reply, if there is one. Return whether there is."""
        if reply is not None:
            job.begin(self.now, self.fields)
            self._owner.settle(self, job, reply)
        return reply is not None

    def _convert(self, job: Job) -> bool:
        """Ask for the 7-bit form of a job's message. Return whether it is known at once and the host takes it."""
        self._converting, self._is_asking = job, True
        self._asked = self._owner.conversions.find(job.message.spool_id).addCallback(self._on_form, job)
        self._asked.addErrback(_ignore_cancelled)
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
        """Give a job back whose message is converted: the session ends, or may not try it any more."""
        job, self._converting = self._converting, None
        asked, self._asked = self._asked, None
        if job is not None:
            if asked is not None:
                asked.cancel()
            self._owner.put_back(self, job)

    # ------------------------------------------------------------------ deadline and end

    def _extend(self) -> None:
        if self.state is not _BUSY:
            super()._extend()
        elif self.client.sent is not None:
            self.deadline = self.now + self._final_s
        else:
            deadline = self.now + self._timeout_s
            self.deadline = deadline if deadline < self._cap else self._cap

    def _leave(self) -> None:
        self._stop_reading()
        super()._leave()

    def _give_back(self) -> None:
        self._put_back_converting()

    def _found_pipelining(self) -> Pipelining:
        return self.client.trust.known


def _ignore_cancelled(failure: Failure) -> None:
    failure.trap(CancelledError)  # type: ignore[no-untyped-call]  # as above
