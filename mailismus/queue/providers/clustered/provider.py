"""The clustered queue: entries and messages in a journal of group commits, large messages in their silos.

    draft -> commit -> [one batch, one barrier] -> young -> take -> settle -> [the next batch] -> gone

What is young has its durable copy in the journal and an index of it in memory (`young`). Checkpoints keep the journal
short (`checkpoint`). When what is *live* reaches `maxsize`, drafts are refused.

*Rules*: nothing is answered, taken or released before the barrier of its batch has returned. Everything here runs in the
reactor's thread; everything that blocks runs in a worker.

Source: `docs/formats/journal`, `docs/durability`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

import attrs
from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import StorageError, Unavailable
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.writer import most_records_size
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import (
    Area,
    Entry,
    Filter,
    IContent,
    IDraft,
    Message,
    Page,
    Settlement,
    Submission,
    Summary,
)
from mailismus.queue.providers.clustered.checkpoint import Checkpoints
from mailismus.queue.providers.clustered.content import WholeContent, as_storage_error, open_in_silo
from mailismus.queue.providers.clustered.draft import Budget, ClusteredDraft
from mailismus.queue.providers.clustered.items import LONGEST_LINE, CheckpointItem, CommitItem, say_again
from mailismus.queue.providers.clustered.line import format_lines
from mailismus.queue.providers.clustered.listing import search_page, summarize
from mailismus.queue.providers.clustered.opening import Opened
from mailismus.queue.providers.clustered.record import checkpoint_record, lines_record, settled_record
from mailismus.queue.providers.clustered.space import SpaceWatch
from mailismus.queue.providers.clustered.stray import StrayWalk
from mailismus.queue.providers.clustered.young import YoungIndex, YoungMessage
from mailismus.spool.message_file import MessageFileReader, MessageFileWriter, remove_message_file
from mailismus.spool.silo import message_path

DRAFT_BYTES = 32 << 20
"""Memory of all drafts together that are small enough to stay there."""

BEHIND_BYTES = 32 << 20
"""Memory of all drafts together that waits for the disk; beyond it each client waits for its own piece."""

CONTENT_BYTES = 32 << 20
"""Memory of all young contents together; beyond it they are read from the journal."""

GIVE_UP_S = 5.0
"""Seconds that a close waits for a journal that can't be written: what was settled meanwhile may be tried twice."""

_LINE_SHARE = 10
"""A new recipient's line is at most so many times (length of the recipient + 64) long: what the grammar of addresses lets
be escaped included."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@attrs.frozen
class Workers:
    """Where blocking calls run: the journal's one thread, and a few for files."""

    journal: IWorker
    files: IWorker


class ClusteredQueue:
    """`IQueue` on local files."""

    _log = Logger()

    def __init__(
        self,
        settings: QueueSettings,
        disk: IDisk,
        opened: Opened,
        workers: Workers,
        reactor: IReactorTime,
        now: Callable[[], float],
    ) -> None:
        """`opened` holds the locks and what the start found; `now` is the wall clock."""
        self._settings = settings
        self._disk = disk
        self._opened = opened
        self._workers = workers
        self._now = now
        self._spool_path = settings.spool.rootpath
        self._spool_ids = opened.spool_ids
        self._index = YoungIndex()
        self._drafts = Budget(DRAFT_BYTES)
        self._behind = Budget(BEHIND_BYTES)
        self._contents = Budget(CONTENT_BYTES)
        most = most_records_size(opened.pool.size_bytes)
        self._largest_in_journal = min(settings.journal.largemsgsize, most // 4)
        if settings.journal.maxage_s == 0:
            self._largest_in_journal = 0
        self._most = most
        self.max_envelope_bytes = (most - self._largest_in_journal) // _LINE_SHARE
        self.commits = GroupCommit(opened.writer, workers.journal, reactor, most, self._on_batch, self._on_sick)
        self.checkpoints = Checkpoints(opened.writer, self.commits, opened.pool, workers.files, self._epoch)
        self.space = SpaceWatch(disk, settings, workers.files, reactor)
        self._ready: dict[Area, dict[Deferred[None], None]] = {area: {} for area in Area}
        self._is_reserving_epoch = False
        self._is_closing = False
        self._finishing = 0
        """Commits whose large messages are being made durable: they have not come to the journal yet."""
        self._reactor = reactor
        self._idle: Deferred[None] | None = None
        self.strays = StrayWalk(
            disk,
            self._spool_path,
            workers.files,
            SpoolId(opened.spool_ids.epoch << 32),
            lambda spool_id: spool_id in self._index.messages,
        )
        self.unlinks_failed = 0

    # opening and closing

    def open(self) -> Deferred[None]:
        now = self._now()
        for young in self._opened.youngs:
            self.checkpoints.lives(young, young.segment)
            self._index.add(young, now)
        self._opened.pool.top_up()
        self.space.start()
        self.checkpoints.look()
        self.strays.start()
        return succeed(None)

    def close(self) -> Deferred[None]:
        self._is_closing = True
        self.space.stop()
        self.strays.stop()
        self._idle = Deferred()
        self.commits.hurry()
        self._look_idle()
        idle = self._idle
        if idle is None:
            idle = succeed(None)
        else:
            self._reactor.callLater(GIVE_UP_S, self._give_up)
        return idle.addCallback(lambda _: self._opened.release())

    def _look_idle(self) -> None:
        if self._idle is not None and self.commits.is_idle and not self._finishing:
            idle, self._idle = self._idle, None
            idle.callback(None)

    def _give_up(self) -> None:
        """It has taken long: go on waiting for a slow disk, not for a sick one."""
        if self._idle is None:
            return
        if self.commits.trouble is None:
            self._reactor.callLater(GIVE_UP_S, self._give_up)
            return
        self._log.error("Closed while the journal can't be written; what was settled last may be tried again.")
        idle, self._idle = self._idle, None
        idle.callback(None)

    # in

    def draft(self) -> IDraft:
        trouble = self.commits.trouble
        if trouble is not None:
            raise Unavailable(f"the journal can't be written: {trouble}", trouble.errno in _FULL)
        if self.checkpoints.live_bytes >= self._settings.journal.maxsize:
            raise Unavailable("the queue holds as much as `maxsize` allows", full=True)
        if self._opened.pool.is_short or self.space.is_short:
            raise Unavailable("the file system is full", full=True)
        if self._is_closing:
            raise Unavailable("the queue is closing")
        spool_id = self._next_spool_id()
        file = MessageFileWriter(self._disk, self._spool_path, spool_id)
        files, bufsize = self._workers.files, self._settings.spool.bufsize
        return ClusteredDraft(spool_id, file, files, self._drafts, self._behind, self._largest_in_journal, bufsize)

    def _next_spool_id(self) -> SpoolId:
        spool_ids = self._spool_ids
        if spool_ids.wants_epoch() and not self._is_reserving_epoch:
            self._is_reserving_epoch = True
            self.commits.append(CheckpointItem(self._reserving_record(), self._epoch_is_reserved))
        spool_id = spool_ids.next()
        if spool_id is None:
            raise Unavailable("no spool id is left until the next epoch is durable")
        return spool_id

    def _reserving_record(self) -> bytes:
        return checkpoint_record(self._opened.writer.horizon, self._spool_ids.epoch + 1)

    def _epoch_is_reserved(self) -> None:
        self._is_reserving_epoch = False
        self._spool_ids.reserved_epoch = self._opened.writer.epoch = self._spool_ids.epoch + 1

    def _epoch(self) -> int:
        return self._spool_ids.reserved_epoch

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        item = CommitItem(self)
        if not submissions:
            at_once = self._most // 2 // LONGEST_LINE
            if len(settlements) > at_once:
                return self._commit_in_parts(settlements, at_once)
            self._append(item, submissions, settlements)
            return item.done
        drafts = []
        is_streaming = False
        for submission in submissions:
            draft = submission.draft
            if not isinstance(draft, ClusteredDraft):
                raise TypeError(f"a draft of another provider: {draft!r}")
            drafts.append(draft)
            is_streaming = is_streaming or draft.is_in_silo
        item.drafts = drafts
        if is_streaming:
            self._finishing += 1
            finished = gatherResults([draft.finish() for draft in drafts], consumeErrors=True)
            finished.addCallbacks(
                lambda _: self._append(item, submissions, settlements), self._not_finished, errbackArgs=(item,)
            ).addBoth(self._has_finished)
        else:
            self._append(item, submissions, settlements)
        return item.done

    def _commit_in_parts(self, settlements: Sequence[Settlement], at_once: int) -> Deferred[Sequence[SpoolId]]:
        """More settlements than one batch is sure to hold."""
        starts = range(0, len(settlements), at_once)
        parts = [self.commit((), settlements[start : start + at_once]) for start in starts]
        return gatherResults(parts).addCallback(lambda over: [spool_id for part in over for spool_id in part])

    def _not_finished(self, failure: Failure, item: CommitItem) -> None:
        """A large message could not be made durable: nothing of the commit counts."""
        cause = failure.value.subFailure if isinstance(failure.value, FirstError) else failure
        for draft in item.drafts:
            draft.drop()
        item.done.errback(cause)

    def _has_finished(self, result: Failure | None) -> Failure | None:
        self._finishing -= 1
        self._look_idle()
        return result

    def _append(self, item: CommitItem, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> None:
        for submission, draft in zip(submissions, item.drafts, strict=True):
            young, entries = _begin(submission, draft)
            item.add_message(young, entries)
        if settlements:
            self._add_settlements(item, settlements)
        if item.size_bytes:
            self.commits.append(item)
        else:
            item.done.callback(())

    def _add_settlements(self, item: CommitItem, settlements: Sequence[Settlement]) -> None:
        messages = self._index.messages
        known: list[Settlement] = []
        over: list[QueueId] = []
        for settlement in settlements:
            spool_id, number = queue_id = settlement.queue_id
            young = messages.get(spool_id)
            if young is None or number not in young.entries:
                continue
            known.append(settlement)
            young.pending += 1
            if settlement.area is None:
                over.append(queue_id)
            else:
                entry = _successor(young.entries[number], settlement, settlement.area)
                item.add(lines_record(settlement.area, spool_id, format_lines(young.message, [entry])))
        if over:
            item.add(settled_record(over))
        item.settlements = known

    # what became of it

    def commit_is_durable(self, item: CommitItem, segment: int, offset: int) -> None:
        """Its barrier has returned (`ICommitOwner`)."""
        now = self._now()
        index = self._index
        for (young, entries, content_offset), draft in zip(item.youngs, item.drafts, strict=True):
            draft.keep()
            young.offset = offset + content_offset
            self._hold_content(young)
            young.entries = {entry.number: entry for entry in entries}
            self.checkpoints.lives(young, segment)
            index.add(young, now)
        over: list[SpoolId] = []
        for settlement in item.settlements:
            spool_id, number = settlement.queue_id
            young_settled = index.messages.get(spool_id)
            if young_settled is None:
                continue
            young_settled.pending -= 1
            successor = None
            if settlement.area is not None and number in young_settled.entries:
                entry = young_settled.entries[number]
                successor = _successor(entry, settlement, settlement.area)
                self.checkpoints.changes(young_settled, entry, successor)
            if index.settle(young_settled, number, successor, now):
                self._release(young_settled)
                over.append(spool_id)
        item.done.callback(over)

    def commit_has_failed(self, item: CommitItem, error: OSError) -> None:
        """Nothing of it counts, settlements included (`ICommitOwner`): a report and its bounces share their fate."""
        for draft in item.drafts:
            draft.drop()
        for settlement in item.settlements:
            young = self._index.messages.get(settlement.queue_id.spool_id)
            if young is not None:
                young.pending -= 1
        item.done.errback(Unavailable(f"the journal can't be written: {error}", error.errno in _FULL))

    def _hold_content(self, young: YoungMessage) -> None:
        """Keep the content in memory while there is room."""
        content = young.content
        if content is not None:
            if self._contents.has_room(len(content)):
                self._contents.used += len(content)
            else:
                young.content = None

    def _release(self, young: YoungMessage) -> None:
        """The last entry's settle is durable: the bytes go."""
        self.checkpoints.gone(young)
        content, young.content = young.content, None
        if content is not None:
            self._contents.used -= len(content)
        if young.is_in_silo:
            spool_id = young.message.spool_id
            self._workers.files.run(lambda: remove_message_file(self._disk, self._spool_path, spool_id)).addErrback(
                self._not_removed, spool_id
            )

    def _not_removed(self, failure: Failure, spool_id: SpoolId) -> None:
        self.unlinks_failed += 1
        self._log.warn("A message file can't be removed: {error}", error=failure.value, spool_id=f"{spool_id:016X}")

    def _on_batch(self) -> None:
        for area, waiting in self._ready.items():
            if waiting and self._index.has_ready(area):
                self._fire(area)
        self.checkpoints.look()
        if self._idle is not None:
            self._look_idle()

    def _on_sick(self) -> Sequence[IItem]:
        """A barrier failed: what lives in that segment and is in memory is said again first; the rest by and by."""
        writer = self._opened.writer
        sick = max(writer.segments.copy(), default=0)
        self.checkpoints.is_sick(sick)
        return [
            item
            for young in self._index.messages.values()
            if young.segment == sick and (young.is_in_silo or young.content is not None)
            for item in say_again(young, young.content, self._most, self.checkpoints.moved)
        ]

    # out

    def take(self, area: Area, limit: int, now: float, per_message: int) -> Deferred[list[Message]]:
        return succeed(self._index.take(area, limit, now, per_message))

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        touched = self._index.give_back(queue_ids, not_before)
        for area, waiting in self._ready.items():
            if waiting and (area in touched or self._index.has_ready(area)):
                self._fire(area)

    def ready(self, area: Area) -> Deferred[None]:
        if self._index.has_ready(area):
            return succeed(None)
        waiting: Deferred[None] = Deferred(lambda gone: self._ready[area].pop(gone, None))
        self._ready[area][waiting] = None
        return waiting

    def _fire(self, area: Area) -> None:
        waiting, self._ready[area] = self._ready[area], {}
        for deferred in waiting:
            if not deferred.called:  # cancelled by one before it
                deferred.callback(None)

    def next_due(self, area: Area) -> float | None:
        return self._index.next_due(area)

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        young = self._index.messages.get(spool_id)
        if young is None:
            return _fail(Unavailable("no such message"))
        if young.content is not None:
            return young.content
        if young.is_in_silo:
            return open_in_silo(
                lambda: MessageFileReader(self._disk, message_path(self._spool_path, spool_id)), self._workers.files
            )
        return self._read_from_journal(young)

    def _read_from_journal(self, young: YoungMessage) -> Deferred[IContent]:
        """Copied whole in one act. The segment is read through its open file; whether the message was said again
        elsewhere meanwhile is looked at afterwards, for its old segment may have been used anew."""
        number = young.segment
        segment = self._opened.writer.segments[number]
        offset, size = young.offset, young.message.size_bytes

        def has_read(content: bytes) -> IContent | Deferred[IContent]:
            if young.segment != number or young.offset != offset:
                return self._read_from_journal(young)
            if len(content) != size:
                raise Unavailable("a journal segment is shorter than it was")
            return WholeContent(content)

        read = self._workers.files.run(lambda: segment.file.read_at(offset, size))
        return read.addCallbacks(has_read, as_storage_error)

    # looking

    def summary(self) -> Deferred[Summary]:
        return succeed(summarize(self._index))

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return succeed(search_page(self._index, wanted, after, limit))

    def visit_all(self, wanted: Filter, now: float) -> Deferred[int]:
        count = 0
        if wanted.area not in (None, Area.DEFERRED):
            return succeed(0)
        for young in list(self._index.messages.values()):
            if wanted.spool_id not in (None, young.message.spool_id):
                continue
            for entry in list(young.entries.values()):
                if entry.area is Area.DEFERRED and wanted.matches(young.message, entry):
                    self._index.visit(young, entry, now)
                    count += 1
        if count and self._ready[Area.DEFERRED]:
            self._fire(Area.DEFERRED)
        return succeed(count)


def _begin(submission: Submission, draft: ClusteredDraft) -> tuple[YoungMessage, list[Entry]]:
    """The message and the entries that a submission makes."""
    envelope, received_at = submission.envelope, submission.received_at
    recipients = envelope.recipients
    message = Message(
        draft.spool_id,
        envelope.sender,
        envelope.client,
        envelope.eightbit,
        received_at,
        draft.size_bytes,
        len(recipients),
        [],
    )
    young = YoungMessage(message)
    if draft.is_in_silo:
        young.is_in_silo = True
    else:
        young.content = b"".join(draft.parts)
    if submission.placements is None:
        incoming = Area.INCOMING
        return young, [Entry(n, recipient, incoming, received_at) for n, recipient in enumerate(recipients, 1)]
    return young, [
        Entry(p.number, recipients[p.number - 1], p.area, p.due_at, p.attempts, p.reply, p.host)
        for p in submission.placements
    ]


def _successor(entry: Entry, settlement: Settlement, area: Area) -> Entry:
    """The entry as it goes on."""
    return Entry(
        entry.number, entry.recipient, area, settlement.due_at, settlement.attempts, settlement.reply, settlement.host
    )


def _fail(error: StorageError) -> Deferred[IContent]:
    failed: Deferred[IContent] = Deferred()
    failed.errback(error)
    return failed
