"""The reporting task: sends failures back to their senders.

    queue ready -> take the bounces of a round -> read -> compose -> one commit: the report in, its bounces gone

*Rules*
- A message with a null sender is never reported (RFC 5321 4.5.5); with `generate_ndr` N no message is. Then the bounces are
  discarded and logged.
- At most `LIMIT` reports are made at the same time, fewer if they are large. At most `queuecache` bounces are held; those of
  one message stay together and may exceed it.
- Bounces are reported as soon as the queue announces them; the intervals only limit how long one can be overlooked. After a
  failure of the queue nothing is tried for a while, and waiting bounces are given back: for a second at first, then for as
  long again as nothing could be reported, at most for `interval_error`. A report whose content can't be read waits as long,
  and no other one waits for it.
- Bounces that another server may have by now are given back.
- A content is read only as far as it is returned. A report of many recipients is composed in many turns of the reactor, so
  that other work does not wait for it.

*Not here*: which bounces belong together (`queue.rounds`), the way of a report to its sender (it is a message like any
other).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import ReportSettings
from mailismus.errors import Corrupt, StorageError
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId, format_spool_id, spool_name
from mailismus.observe.audit import Action
from mailismus.observe.audit_log import NO_AUDITS, Audits
from mailismus.observe.maillog import MailLog
from mailismus.queue.addressed import addressed
from mailismus.queue.audited import audited_bounce
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area, Message
from mailismus.report.compose import Origin, Report, compose_in_steps
from mailismus.report.excerpt import Excerpt, make_excerpt, max_stored_bytes, wanted_bytes
from mailismus.report.pause import Trouble, pause_s
from mailismus.report.queue_seam import ReportQueue

LIMIT = 10
"""Reports made at the same time."""
MEMORY_BYTES = 20_000_000
"""Approximate memory for the content of all of them."""
UNREADABLE_S = 86400.0
"""How long a report waits, in one run, for a content that can't be read but is not known to be damaged."""
REMEMBERED = 10_000
"""Unreadable messages whose first failure is remembered; beyond that the oldest one starts anew."""
MIN_DUE_S = 0.02


class ReportCounters:
    """Totals of reporting since the start."""

    def __init__(self) -> None:
        self.taken = 0
        """Bounces taken from the queue."""
        self.reports = 0
        """Durable reports in the queue."""
        self.reported = self.discarded = self.given_back = 0
        """Bounces by their end."""

    def count_taken(self, bounces: int) -> None:
        self.taken += bounces

    def count_report(self, bounces: int) -> None:
        """Count a report of so many bounces."""
        self.reports += 1
        self.reported += bounces

    def count_discarded(self, bounces: int) -> None:
        self.discarded += bounces

    def count_given_back(self, bounces: int) -> None:
        self.given_back += bounces


class ReportTask:
    """The task. `host`: this host's name. `random(n)` returns n random bytes. Call `start` once the queue is open."""

    log = Logger()

    def __init__(
        self,
        settings: ReportSettings,
        host: bytes,
        queue: ReportQueue,
        maillog: MailLog,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        random: Callable[[int], bytes],
        audits: Audits = NO_AUDITS,
    ) -> None:
        self._host = host
        self.reload(settings)
        self._queue, self._maillog, self._audit = queue, maillog, audits.bounced
        self._clock, self._monotonic, self._random = clock, monotonic, random
        self.counters = ReportCounters()
        self.held = 0
        """Bounces taken, and not yet reported, discarded or given back."""
        self._pending: deque[Message] = deque()
        self._in_progress = 0
        self._is_running = self._is_pumping = self._is_pump_scheduled = self._is_listening = False
        self._is_open = True
        """Whether there may be more to take."""
        self._empty_takes = 0
        self._not_before = 0.0
        self._trouble = Trouble()
        """Of the queue: over when bounces were ended."""
        self._unreadable_since: dict[SpoolId, float] = {}
        """Since when each message can't be read, in monotonic seconds."""
        self._poll: IDelayedCall | None = None
        self._when_done: Deferred[None] | None = None

    def reload(self, settings: ReportSettings) -> None:
        """Use other settings for later reports. `audit` stays unchanged."""
        self._settings = settings
        self._origin = Origin(self._host, settings.ndr_from, settings.ndr_subject)
        self._limit = max(1, min(LIMIT, MEMORY_BYTES // max_stored_bytes(settings.attachmsg)))

    def start(self) -> None:
        """Begin, after `delay_start`."""
        self._is_running = True
        self._poll_in(self._settings.delay_start_s)

    def stop(self, deadline: float) -> Deferred[None]:
        """Begin no report. Fires when those under way are durable or given back, at `deadline` (monotonic seconds) at the
        latest: a report that is not durable then may become so, or its bounces are there at the next start."""
        self._is_running = False
        if self._poll is not None and self._poll.active():
            self._poll.cancel()
        while self._pending:
            self._give_back(self._pending.popleft(), 0.0)
        if not self._in_progress:
            return succeed(None)
        done = self._when_done = Deferred()
        timer = self._clock.callLater(max(0.0, deadline - self._monotonic()), self._on_done)
        done.addCallback(lambda _: timer.cancel() if timer.active() else None)
        return done

    def _on_done(self) -> None:
        if self._when_done is not None:
            done, self._when_done = self._when_done, None
            done.callback(None)

    # ------------------------------------------------------------------ taking

    def _schedule_pump(self) -> None:
        """Take bounces in a turn of its own: there may be new ones, or room again."""
        if self._is_running and not self._is_pump_scheduled:
            self._is_pump_scheduled = True
            self._clock.callLater(0, self._pump)

    def _pump(self) -> None:
        self._is_pump_scheduled = False
        if not self._is_running or self._is_pumping:
            return
        wait_s = self._not_before - self._monotonic()
        if wait_s > 0:
            self._poll_in(wait_s)
            return
        room = self._settings.queuecache - self.held
        if self._is_open and room > 0:
            self._is_pumping = True
            self._queue.take(Area.BOUNCES, room).addCallbacks(self._taken, self._not_taken, (room,)).addErrback(self._on_bug)
        elif not self._is_open:
            self._poll_in(self._interval_s())

    def _taken(self, messages: list[Message], room: int) -> None:
        self._is_pumping = False
        count = sum(len(message.entries) for message in messages)
        self.held += count
        self._pending.extend(messages)
        if not self._is_running:
            while self._pending:
                self._give_back(self._pending.popleft(), 0.0)
            return
        self.counters.count_taken(count)
        self._empty_takes = 0 if count else self._empty_takes + 1
        if count < room:  # no bounces are left: the queue announces new ones
            self._is_open = False
            if self._empty_takes > 2:
                self._clock.callLater(self._settings.interval_low_s, self._listen)
            else:
                self._listen()
        self._work()
        self._schedule_pump()

    def _not_taken(self, failure: Failure) -> None:
        self._is_pumping = False
        failure.trap(StorageError)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self._pause("The bounces can't be read: {error}", failure)

    def _on_bug(self, failure: Failure) -> None:
        self._is_pumping = False
        self.log.failure("Taking bounces failed unexpectedly", failure)
        self._not_before = self._monotonic() + self._settings.interval_error_s
        self._schedule_pump()

    def _pause(self, sentence: str, failure: Failure) -> float:
        """Stop for a while after a failure of the queue. Return for how many seconds."""
        self.log.warn(sentence, error=str(failure.value))
        now = self._monotonic()
        wait_s = self._trouble.failed(now, self._settings.interval_error_s)
        self._not_before = now + wait_s
        while self._pending:
            self._give_back(self._pending.popleft(), wait_s)
        self._schedule_pump()
        return wait_s

    def _listen(self) -> None:
        if self._is_running and not self._is_listening:
            self._is_listening = True
            self._queue.ready(Area.BOUNCES).addCallbacks(self._on_ready, self._not_ready)

    def _on_ready(self, _: None) -> None:
        self._is_listening = False
        self._is_open = True
        self._schedule_pump()

    def _not_ready(self, failure: Failure) -> None:
        """Stop listening: the queue is closed or failed; the poll asks again."""
        self._is_listening = False

    def _interval_s(self) -> float:
        """Most seconds until the next poll."""
        settings = self._settings
        wait_s = settings.interval_high_s if self._empty_takes else settings.interval_low_s
        due_at = self._queue.next_due(Area.BOUNCES)
        if due_at is not None:
            left_s = due_at - self._clock.seconds()
            wait_s = min(wait_s, max(MIN_DUE_S, left_s) if left_s > 0 else settings.interval_low_s)
        return wait_s

    def _poll_in(self, wait_s: float) -> None:
        """Poll in this many seconds, whatever was planned before."""
        if self._poll is not None and self._poll.active():
            self._poll.reset(wait_s)
        else:
            self._poll = self._clock.callLater(wait_s, self._on_poll)

    def _on_poll(self) -> None:
        self._is_open = True
        self._empty_takes = 0
        self._schedule_pump()

    # ------------------------------------------------------------------ reporting

    def _work(self) -> None:
        while self._pending and self._in_progress < self._limit and self._is_running:
            message = self._pending.popleft()
            self._in_progress += 1
            Deferred.fromCoroutine(self._dispose(message))

    async def _dispose(self, message: Message) -> None:
        """Report or discard the bounces of one round."""
        try:
            if not self._queue.may_try(message.spool_id):
                self._give_back(message, 0.0)
            elif message.sender and self._settings.generate_ndr:
                await self._report(message)
            else:
                await self._discard(message)
        except StorageError:
            wait_s = self._pause("No report can be made: {error}", Failure())  # type: ignore[no-untyped-call]  # Twisted's
            self._give_back(message, wait_s)
        except Exception:  # a bug must neither lose a bounce nor hold it for ever
            self.log.failure("{spool_id}: reporting failed unexpectedly", spool_id=format_spool_id(message.spool_id))
            self._give_back(message, self._settings.interval_error_s)
        self._in_progress -= 1
        if self._in_progress == 0:
            self._on_done()
        self._work()
        if self._is_open:
            self._schedule_pump()

    async def _report(self, message: Message) -> None:
        try:
            excerpt = await self._read(message)
        except StorageError as error:
            self.log.warn(
                "{spool_id}: the message can't be read now, its report waits: {error}",
                spool_id=format_spool_id(message.spool_id),
                error=str(error),
            )
            self._give_back(message, self._unreadable_pause_s(message.spool_id))
            return
        draft = self._queue.draft()
        now = int(self._clock.seconds())
        try:
            report = await self._compose(draft.spool_id, message, excerpt, now)
            waits = draft.write(report.content)
            if waits is not None:
                await waits
        except BaseException:
            draft.abandon()
            raise
        envelope = Envelope(
            b"",
            (report.recipient,),
            eightbit=report.is_eightbit,
            stuffed_dots=report.stuffed_dots,
            words=report.words,
        )
        await self._queue.report(draft, envelope, message)
        write, name = self._maillog.write, spool_name(draft.spool_id)
        write(b"%b: sender non-delivery notification: %b" % (spool_name(message.spool_id), name))
        write(b"%b: from=<>, size=%d, nrcpt=1, message-id=%b" % (name, report.size_bytes, report.message_id))
        if self._audit is not None:
            for entry in message.entries:
                self._audit.write(audited_bounce(Action.REPORTED, message, entry, draft.spool_id))
        self.counters.count_report(len(message.entries))
        self._have_ended(message)

    async def _compose(self, spool_id: SpoolId, message: Message, excerpt: Excerpt | None, now: int) -> Report:
        """Compose the report of these bounces, in many turns of the reactor if there are many recipients."""
        steps = compose_in_steps(self._origin, spool_id, message, excerpt, now, self._random)
        while (report := next(steps)) is None:
            await deferLater(self._clock, 0)
        return report

    async def _discard(self, message: Message) -> None:
        await self._queue.discard(message)
        why = b"generate_ndr is N" if message.sender else b"the sender is null"
        for entry in message.entries:
            self._maillog.write(b"%b: to=<%b>, bounce discarded: %b" % (spool_name(message.spool_id), addressed(entry), why))
            if self._audit is not None:
                action = Action.DISCARDED if message.sender else Action.REPORT_DISCARDED
                self._audit.write(audited_bounce(action, message, entry))
        self.counters.count_discarded(len(message.entries))
        self._have_ended(message)

    def _have_ended(self, message: Message) -> None:
        self.held -= len(message.entries)
        self._trouble.end()

    async def _read(self, message: Message) -> Excerpt | None:
        """The excerpt of the content; None: the content is lost."""
        limit = self._settings.attachmsg
        try:
            content = self._queue.read(message.spool_id)
            if not isinstance(content, bytes):
                wanted = wanted_bytes(message.size_bytes, message.stored_bytes, limit)
                content = await _read_beginning(await content, wanted)
        except StorageError as error:
            if not isinstance(error, Corrupt) and not self._note_unreadable(message.spool_id):
                raise
            self.log.error(
                "{spool_id}: the message can't be read, its report goes without it: {error}",
                spool_id=format_spool_id(message.spool_id),
                error=str(error),
            )
            return None
        self._unreadable_since.pop(message.spool_id, None)
        return make_excerpt(content, message.size_bytes, message.stored_bytes, limit)

    def _note_unreadable(self, spool_id: SpoolId) -> bool:
        """Note that a content can't be read. True: for so long that the report is made without it."""
        now, since = self._monotonic(), self._unreadable_since
        if now - since.setdefault(spool_id, now) >= UNREADABLE_S:
            del since[spool_id]
            return True
        if len(since) > REMEMBERED:
            del since[next(iter(since))]
        return False

    def _unreadable_pause_s(self, spool_id: SpoolId) -> float:
        """Return the seconds until a content is read again: the longest where there are too many to be remembered."""
        longest_s, since = self._settings.interval_error_s, self._unreadable_since
        now = self._monotonic()
        return longest_s if len(since) >= REMEMBERED else pause_s(now - since.get(spool_id, now), longest_s)

    def _give_back(self, message: Message, delay_s: float) -> None:
        count = len(message.entries)
        self.held -= count
        self.counters.count_given_back(count)
        self._queue.give_back(message, message.entries, delay_s)


async def _read_beginning(content: IContent, wanted: int) -> bytes:
    """The beginning of a content: `wanted` bytes, or up to a piece more."""
    pieces: list[bytes] = []
    size = 0
    try:
        while size < wanted and (piece := await content.next()):
            pieces.append(piece)
            size += len(piece)
    finally:
        content.close()
    return b"".join(pieces)
