"""The clustered queue: entries and messages in a journal of group commits, large messages in their silos.

    draft -> commit -> [one batch, one barrier] -> young -> take -> settle -> [the next batch] -> gone
                                                     |                 ^
                                                     +- [checkpoint] -> resting

What is young has its durable copy in the journal and an index of it in memory (`young`). What stays is written behind into
clusters and silos by checkpoints (`checkpoint`); of it the clusters are known (`resting`), and read when they are due
(`visit`). Bytes go with their last entry (`release`).

*Rules*: nothing is answered, taken or released before the barrier of its batch has returned. Everything here runs in the
reactor's thread; everything that blocks runs in a worker.

Source: `docs/formats/journal`, `docs/durability`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.presence import Missing
from mailismus.disk.worker import Workers
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.pressure import Pressure
from mailismus.journal.throttle import CommitThrottle
from mailismus.journal.writer import NoSegment, most_records_size
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.files.presence import PresenceWatch
from mailismus.queue.interface import (
    Area,
    Entry,
    Filter,
    Flushed,
    IContent,
    ICountingPlan,
    IDraft,
    Latest,
    Message,
    Page,
    Settlement,
    Submission,
    Summary,
)
from mailismus.queue.providers.clustered.admission import AdmissionControl, as_unavailable
from mailismus.queue.providers.clustered.checkpoint.run import CheckpointRunner
from mailismus.queue.providers.clustered.checkpoint.write import PendingCheckpoint
from mailismus.queue.providers.clustered.closing import Closing
from mailismus.queue.providers.clustered.commit.items import LONGEST_LINE, CommitItem, EpochItem, say_again
from mailismus.queue.providers.clustered.commit.spool_ids import Naming
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.format.record import epoch_record
from mailismus.queue.providers.clustered.index.cluster_index import ClusteredEntry
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.queue.providers.clustered.ledger import Ledger, begin_message
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader, Unread
from mailismus.queue.providers.clustered.read.content import Contents
from mailismus.queue.providers.clustered.read.due_scan import DueScan
from mailismus.queue.providers.clustered.read.search import QueueSearch
from mailismus.queue.providers.clustered.reclaim.release import Release
from mailismus.queue.providers.clustered.recovery.opening import Opened
from mailismus.spool.content import as_storage_error
from mailismus.spool.draft import Budget, RefusedDrafts, SpoolDraft
from mailismus.spool.message_file import MessageFileWriter

DRAFT_BYTES = 24 << 20
"""Memory of all drafts together that are small enough to stay there; with the next one it makes 32 MiB."""

BEHIND_BYTES = 8 << 20
"""Memory of all drafts together that waits for the disk; beyond it each client waits for its own piece."""

_LINE_SHARE = 10
"""A new recipient's line is at most so many times (length of the recipient + 64) long, escapes included."""


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
        self._settings, self._disk = settings, disk
        self.opened, self._workers = opened, workers
        self.now = now
        self._spool_path = settings.spool.rootpath
        self._index, self._resting = Memtable(opened.resting.out_of), opened.resting
        first_new = SpoolId(opened.spool_ids.epoch << 32)
        root = settings.rootpath
        corrupt = os.path.join(root, "corrupt")
        self.reader = ClusterReader(workers.files, self._resting)
        self.visits = DueScan(disk, root, workers.files, self.reader, self._index, self._resting)
        self.release = Release(
            disk,
            settings.spool,
            workers.files,
            reactor,
            self._index,
            self.reader,
            first_new,
            corrupt,
            self.visits.set_aside,
        )
        self.ledger = Ledger(self._index, self._resting, self.release, lambda: self.checkpoints.moving, self._wake_due)
        self.drafts = Budget(DRAFT_BYTES)
        self.behind = Budget(BEHIND_BYTES)
        most = most_records_size(opened.pool.size_bytes)
        self._largest_in_journal = min(settings.journal.largemsgsize, most // 4)
        self._most = most
        self._nothing_waits = settings.journal.maxage_s == 0
        self.max_envelope_bytes = (most - self._largest_in_journal) // _LINE_SHARE
        self.commits = GroupCommit(opened.writer, workers.journal, reactor, most, self._on_batch, self._on_sick)
        self.naming = Naming(opened.spool_ids, self.commits, opened.writer)
        self.checkpoints = CheckpointRunner(
            settings,
            disk,
            opened.writer,
            self.commits,
            opened.pool,
            workers.files,
            reactor,
            now,
            self._index,
            self._resting,
            self.ledger,
            next_number=opened.next_checkpoint,
            epoch=lambda: self.naming.epoch,
            presence=opened.locations.everything,
        )
        self.space = SpaceWatch(disk, settings, workers.files, reactor)
        self.presence = PresenceWatch(opened.locations.everything, self.commits, workers.files, reactor)
        self._ready: dict[Area, dict[Deferred[None], None]] = {area: {} for area in Area}
        self.brake = CommitThrottle()
        self._refused = RefusedDrafts()
        self._reactor = reactor
        self.pressure = Pressure(self.commits, reactor)
        self._acceptance = AdmissionControl(self.commits, self.checkpoints, opened.pool, self.space, self.pressure)
        self._closing = Closing(self.commits, self.checkpoints, self.pressure, self._index, reactor, opened.release)
        self._contents = Contents(disk, settings.spool.rootpath, workers.files, self._index, opened.writer.segments, corrupt)
        self.looks = QueueSearch(
            disk, root, self.reader, self._index, self._resting, lambda: self.checkpoints.newest, reactor
        )

    # opening and closing

    def open(self) -> Deferred[None]:
        now = self.now()
        for young in self.opened.youngs:
            self._index.add(young, now)
        self.opened.pool.top_up()
        self.space.start()
        self.pressure.start()
        self.presence.start()
        self.checkpoints.start()
        self.release.walk_if_needed()
        return succeed(None)

    def close(self) -> Deferred[None]:
        self._acceptance.is_closing = True
        self.presence.stop()
        self.space.stop()
        self.pressure.stop()
        self.release.stop()
        return self._closing.begin().addCallback(self._on_closed)

    def _on_closed(self, _: None) -> None:
        resting = sum(cluster.live or 0 for cluster in self._resting.clusters.values())
        root = self._settings.rootpath
        self.presence.on_stopped(len(self._index.messages), resting, root, os.path.join(root, "journal"))

    # in

    def draft(self) -> IDraft:
        self._acceptance.check()
        spool_id = self.naming.next()
        file = MessageFileWriter(self._disk, self._spool_path, spool_id)
        files, bufsize = self._workers.files, self._settings.spool.bufsize
        return SpoolDraft(spool_id, file, files, self.drafts, self.behind, self._largest_in_journal, bufsize)

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        item = CommitItem(self)
        if not submissions:
            at_once = self._most // 2 // LONGEST_LINE
            if len(settlements) > at_once:
                return self._commit_in_parts(settlements, at_once)
            strangers = self._append(item, submissions, settlements)
            if not strangers or not self._resting.clusters:
                return item.done
            found = Deferred.fromCoroutine(self._settle_strangers(strangers))
            return gatherResults([item.done, found]).addCallback(lambda parts: [*parts[0], *parts[1]])
        drafts = []
        is_streaming = False
        for submission in submissions:
            draft = submission.draft
            if not isinstance(draft, SpoolDraft):
                raise TypeError(f"a draft of another provider: {draft!r}")
            drafts.append(draft)
            is_streaming = is_streaming or draft.is_in_silo
        item.drafts = drafts
        if is_streaming:
            self.pressure.finishing += 1
            finished = gatherResults(
                [draft.finish(self._names_of(submission)) for draft, submission in zip(drafts, submissions, strict=True)],
                consumeErrors=True,
            )
            finished.addCallbacks(
                lambda _: self._append(item, submissions, settlements), self._not_finished, errbackArgs=(item,)
            ).addBoth(self._on_finished)
        else:
            self._append(item, submissions, settlements)
        return item.done

    def _names_of(self, submission: Submission) -> Sequence[int]:
        """The recipients that get a name each for the message file."""
        count = len(submission.envelope.recipients)
        if count == 1 or not self.release.has_links:
            return ()
        if submission.placements is None:
            return range(1, count + 1)
        return [placement.number for placement in submission.placements]

    def _commit_in_parts(self, settlements: Sequence[Settlement], at_once: int) -> Deferred[Sequence[SpoolId]]:
        """More settlements than one batch is sure to hold."""
        parts = [self.commit((), settlements[start : start + at_once]) for start in range(0, len(settlements), at_once)]
        return gatherResults(parts).addCallback(lambda over: [spool_id for part in over for spool_id in part])

    async def _settle_strangers(self, settlements: list[Settlement]) -> Sequence[SpoolId]:
        """Settlements of entries that nobody took: those that rest are looked for, the others are gone."""
        wanted = {settlement.queue_id for settlement in settlements}
        for cluster in list(self._resting.clusters.values()):
            lines = await self.looks.live_lines(cluster)
            if isinstance(lines, Unread):
                continue  # an entry that can't be found comes once more
            for line in lines:
                queue_id = QueueId(line.message.spool_id, line.entry.number)
                if queue_id in wanted and not cluster.is_hidden(line.offset):
                    self._resting.hold(ClusteredEntry(line.message, line.entry, cluster, line.offset))
        found = [settlement for settlement in settlements if settlement.queue_id in self._resting.out]
        return await self.commit((), found) if found else ()

    def _not_finished(self, failure: Failure, item: CommitItem) -> None:
        """A large message could not be made durable: nothing of the commit counts."""
        cause = failure.value.subFailure if isinstance(failure.value, FirstError) else failure
        self._refused.add(item.drafts, may_be_found=False)
        item.done.errback(cause)

    def _on_finished(self, result: Failure | None) -> Failure | None:
        self.pressure.finishing -= 1
        self.pressure.finished += 1
        self._closing.look()
        return result

    def _append(
        self, item: CommitItem, submissions: Sequence[Submission], settlements: Sequence[Settlement]
    ) -> list[Settlement]:
        """Into the journal; gives the settlements of entries that are neither young nor out."""
        strangers: list[Settlement] = []
        for submission, draft in zip(submissions, item.drafts, strict=True):
            young, entries = begin_message(submission, draft)
            item.add_message(young, entries)
        if settlements:
            strangers = self.ledger.add_settlements(item, settlements)
        if item.size_bytes:
            self.commits.append(item)
        else:
            item.done.callback(())
        return strangers

    # what became of it

    def commit_is_durable(self, item: CommitItem, segment: int, offset: int) -> None:
        """Its barrier has returned (`ICommitOwner`)."""
        now = self.now()
        for (young, entries, content_offset), draft in zip(item.youngs, item.drafts, strict=True):
            draft.keep()
            self.ledger.arrive(young, entries, segment, offset + content_offset, now)
        over: list[SpoolId] = []
        for settlement in item.settlements:
            if self.ledger.settle(settlement, now):
                over.append(settlement.queue_id.spool_id)
        if not item.youngs:
            item.done.callback(over)
        elif self._nothing_waits:
            self.checkpoints.write_behind_all().addCallback(lambda _: item.done.callback(over))
        elif delay_s := self.brake.delay_s(self._reactor.seconds(), self.checkpoints.excess):
            self._reactor.callLater(delay_s, item.done.callback, over)
        else:
            item.done.callback(over)

    def commit_has_failed(self, item: CommitItem, error: OSError) -> None:
        """Nothing of it counts, settlements included (`ICommitOwner`): a report and its bounces share their fate."""
        self._refused.add(item.drafts, may_be_found=not isinstance(error, NoSegment | Missing))
        for settlement in item.settlements:
            self.ledger.refuse(settlement)
        item.done.errback(as_unavailable(error))

    def _on_batch(self) -> None:
        self._refused.drop()
        self._remove_spoiled()
        for area, waiting in self._ready.items():
            if waiting and (area in self._resting.woken or self._index.has_ready(area)):
                self._fire(area)
        self._resting.woken.clear()
        self.checkpoints.on_batch()
        self._closing.look()

    def _on_sick(self) -> Sequence[IItem]:
        """A barrier failed: what lives in that segment and is in memory is said again first; the rest by and by. What rests
        is not: it would be there twice."""
        self._remove_spoiled()
        sick = self.opened.writer.sick
        if not sick:
            return ()  # a segment could not be begun: all that was written is well
        self.checkpoints.add_failed(sick)
        self.checkpoints.hurry()
        again = [
            item
            for young in self._index.messages.values()
            if young.segment in sick and (young.is_in_silo or young.content is not None)
            for item in say_again(young, young.content, self._most, self._on_rewritten)
        ]
        return again or [EpochItem(epoch_record(self.naming.epoch), lambda: None)]  # a failed record must be denied

    def _remove_spoiled(self) -> None:
        """Segments that could not be begun."""
        spoiled = self.opened.writer.spoiled
        while spoiled:
            self.opened.pool.remove(spoiled.pop())

    def _on_rewritten(self, young: JournaledMessage, segment: int, content_offset: int) -> None:
        young.segment, young.offset = segment, content_offset

    # out

    def take(self, area: Area, limit: int, now: float, per_message: int) -> Deferred[list[Message]]:
        return self.visits.take(area, limit, now, per_message)

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        touched = self._resting.give_back(queue_ids, not_before) | self._index.give_back(queue_ids, not_before)
        for area, waiting in self._ready.items():
            if waiting and (area in touched or area in self._resting.woken or self._index.has_ready(area)):
                self._fire(area)
        self._resting.woken.clear()

    def ready(self, area: Area) -> Deferred[None]:
        due_at = self._resting.next_due(area)
        if self._index.has_ready(area) or (due_at is not None and due_at <= self.now()):
            return succeed(None)
        waiting: Deferred[None] = Deferred(lambda gone: self._ready[area].pop(gone, None))
        self._ready[area][waiting] = None
        return waiting

    def _fire(self, area: Area) -> None:
        waiting, self._ready[area] = self._ready[area], {}
        for deferred in waiting:
            if not deferred.called:  # cancelled by one before it
                deferred.callback(None)

    def _wake_due(self) -> None:
        """A checkpoint moved entries: who waits for an area with something due in it is told."""
        for area, waiting in self._ready.items():
            if waiting and self._resting.next_due(area) is not None:
                self._fire(area)

    def next_due(self, area: Area) -> float | None:
        dues = [due_at for due_at in (self._index.next_due(area), self._resting.next_due(area)) if due_at is not None]
        return min(dues, default=None)

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return self._contents.read(spool_id)

    # looking

    def summary(self) -> Deferred[Summary]:
        return Deferred.fromCoroutine(self.looks.summarize(self._acceptance.reason()))

    def counting_plan(self) -> ICountingPlan:
        return self.looks.plan(self._acceptance.reason())

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self.looks.search(wanted, after, limit))

    def hasten(self, latest: Latest, now: float) -> None:
        moving: Mapping[QueueId, Entry] = {}
        checkpoint = self.checkpoints.moving
        if checkpoint is not None and not self.checkpoints.is_broken:  # its lines rest with the time they had
            moving = checkpoint.entries
            lengths = {cluster.id: cluster.length or 0 for cluster in self._resting.clusters.values()}
            self.checkpoints.run().addCallback(lambda _: self._hasten_moved(checkpoint, lengths, latest, now))
        for area in self._index.hasten(latest, now, moving) | self._resting.hasten(latest):
            self._fire(area)

    def _hasten_moved(self, moving: PendingCheckpoint, lengths: Mapping[ClusterId, int], latest: Latest, now: float) -> None:
        """The checkpoint that was under way is over: now those that it moved, or did not."""
        for cluster_id in moving.grown:
            cluster = self._resting.clusters.get(cluster_id)
            if cluster is not None and cluster.length:
                self._resting.limit(cluster, lengths.get(cluster_id, 0), latest)
                self._fire(cluster_id.area)
        for area in self._index.hasten(latest, now, moving.entries, is_moved=True):
            self._fire(area)

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        # What is being moved would rest with the time it had when its line was written.
        moved = self.checkpoints.run() if self.checkpoints.moving is not None else succeed(None)
        found = moved.addCallback(lambda _: Deferred.fromCoroutine(self.visits.flush(wanted, now)))
        return found.addCallbacks(self._flushed, as_storage_error)

    def _flushed(self, flushed: Flushed) -> Flushed:
        if flushed.entries and self._ready[Area.DEFERRED]:
            self._fire(Area.DEFERRED)
        return flushed
