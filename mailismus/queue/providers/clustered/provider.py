"""The clustered queue: entries and messages in a journal of group commits, large messages in their silos.

    draft -> commit -> [one batch, one barrier] -> memtable -> take -> settle -> [the next batch] -> gone
                                                      |                  ^
                                                      +- [checkpoint] -> cluster index

Entries of the memtable have their durable copy in the journal. Checkpoints move longer-lived entries to cluster files, and
their messages to silos (`checkpoint`). The cluster index knows the cluster files (`index.cluster_index`); a due scan reads
them when entries are due (`read.due_scan`). Message bytes are removed with their last entry (`reclaim.release`).

*Rules*: nothing is answered, taken or released before the barrier of its batch has returned. All code here runs in the
reactor's thread; blocking calls run in a worker.

*Not here*: the wiring of the parts (`assembly`), the steps after a batch (`control.batch_results`).

Source: `docs/formats/journal`, `docs/durability`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import (
    Area,
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
from mailismus.queue.providers.clustered.commit.items import CommitItem
from mailismus.queue.providers.clustered.control.admission import as_unavailable, may_be_found
from mailismus.queue.providers.clustered.control.ledger import begin_message
from mailismus.queue.providers.clustered.format.record import FORMAT_WITH_WORDS
from mailismus.queue.providers.clustered.index.cluster_index import ClusteredEntry
from mailismus.queue.providers.clustered.parts import QueueParts
from mailismus.queue.providers.clustered.read.cluster_reader import Unread
from mailismus.queue.words import check_words
from mailismus.spool.content import as_storage_error
from mailismus.spool.draft import SpoolDraft


class ClusteredQueue:
    """`IQueue` on local files. Made by `assembly.build`."""

    _log = Logger()

    def __init__(self, parts: QueueParts) -> None:
        self.parts = parts
        self.state, self.ledger, self.commits, self.checkpoints = parts.state, parts.ledger, parts.commits, parts.checkpoints
        self._now, self._reactor = parts.state.now, parts.reactor
        self._memtable, self._cluster_index = parts.state.memtable, parts.state.cluster_index
        self._limits, self._admission, self._drafts = parts.limits, parts.admission, parts.drafts
        self._segments, self._brake, self._waiters = parts.segments, parts.brake, parts.waiters
        self._due_scan, self._contents = parts.due_scan, parts.contents
        self.max_envelope_bytes = parts.limits.envelope

    # opening and closing

    def open(self) -> Deferred[None]:
        parts, now = self.parts, self._now()
        for journaled in parts.opened.youngs:
            self._memtable.add(journaled, now)
        self._segments.top_up()
        parts.space.start()
        parts.pressure.start()
        parts.presence.start()
        self.checkpoints.start()
        parts.release.scan_if_needed()
        return succeed(None)

    def close(self) -> Deferred[None]:
        parts = self.parts
        self._admission.close()
        parts.presence.stop()
        parts.space.stop()
        parts.pressure.stop()
        parts.release.stop()
        return parts.closing.begin().addCallback(self._on_closed)

    def _on_closed(self, _: None) -> None:
        in_clusters = sum(cluster.live or 0 for cluster in self._cluster_index.clusters.values())
        root = self.parts.root
        self.parts.presence.on_stopped(len(self._memtable.messages), in_clusters, root, os.path.join(root, "journal"))

    # in

    def draft(self) -> IDraft:
        self._admission.check()
        return self._drafts.make()

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        if check_words(submissions, settlements, self.max_envelope_bytes):
            self.parts.opened.writer.require_format(FORMAT_WITH_WORDS)
        item = CommitItem(self)
        if not submissions:
            at_once = self._limits.settlements
            if len(settlements) > at_once:
                return self._commit_in_parts(settlements, at_once)
            unknown = self._append(item, submissions, settlements)
            if not unknown or not self._cluster_index.clusters:
                return item.done
            found = Deferred.fromCoroutine(self._settle_unknown(unknown))
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
            self.parts.pressure.begin_file()
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
        """Return the numbers of the recipients that have a name of their own for the message file."""
        count = len(submission.envelope.recipients)
        if count == 1 or not self.parts.release.has_links:
            return ()
        if submission.placements is None:
            return range(1, count + 1)
        return [placement.number for placement in submission.placements]

    def _commit_in_parts(self, settlements: Sequence[Settlement], at_once: int) -> Deferred[Sequence[SpoolId]]:
        """Commit more settlements than one batch is sure to hold."""
        parts = [self.commit((), settlements[start : start + at_once]) for start in range(0, len(settlements), at_once)]
        return gatherResults(parts).addCallback(lambda over: [spool_id for part in over for spool_id in part])

    async def _settle_unknown(self, settlements: list[Settlement]) -> Sequence[SpoolId]:
        """Settle entries that were not handed out: search the clusters for them. Entries that are not found ended before."""
        wanted = {settlement.queue_id for settlement in settlements}
        cluster_index = self._cluster_index
        for cluster in list(cluster_index.clusters.values()):
            lines = await self.parts.search.live_lines(cluster)
            if isinstance(lines, Unread):
                continue  # an entry that can't be found is delivered once more
            for line in lines:
                queue_id = QueueId(line.message.spool_id, line.entry.number)
                if queue_id in wanted and not cluster.is_hidden(line.offset):
                    cluster_index.hold(ClusteredEntry(line.message, line.entry, cluster, line.offset))
        found = [settlement for settlement in settlements if settlement.queue_id in cluster_index.out]
        return await self.commit((), found) if found else ()

    def _not_finished(self, failure: Failure, item: CommitItem) -> None:
        """Fail a commit whose large message could not be made durable: no part of the commit counts."""
        cause = failure.value.subFailure if isinstance(failure.value, FirstError) else failure
        self._drafts.refused.add(item.drafts, may_be_found=False)
        item.done.errback(cause)

    def _on_finished(self, result: Failure | None) -> Failure | None:
        self.parts.pressure.end_file()
        self.parts.closing.check()
        return result

    def _append(
        self, item: CommitItem, submissions: Sequence[Submission], settlements: Sequence[Settlement]
    ) -> list[Settlement]:
        """Append to the journal. Return the settlements of entries that are neither in the memtable nor out."""
        unknown: list[Settlement] = []
        for submission, draft in zip(submissions, item.drafts, strict=True):
            journaled, entries = begin_message(submission, draft)
            item.add_message(journaled, entries)
        if settlements:
            unknown = self.ledger.add_settlements(item, settlements)
        if item.size_bytes:
            self.commits.append(item)
        else:
            item.done.callback(())
        return unknown

    def commit_is_durable(self, item: CommitItem, segment: int, offset: int) -> None:
        """Apply a commit whose barrier has returned (`ICommitOwner`)."""
        now = self._now()
        for (journaled, entries, content_offset), draft in zip(item.messages, item.drafts, strict=True):
            draft.keep()
            self.ledger.arrive(journaled, entries, segment, offset + content_offset, now)
        over: list[SpoolId] = []
        for settlement in item.settlements:
            if self.ledger.settle(settlement, now):
                over.append(settlement.queue_id.spool_id)
        if not item.messages:
            item.done.callback(over)
        elif self._limits.keeps_nothing_back:
            self.checkpoints.run_over_all().addCallback(lambda _: item.done.callback(over))
        elif delay_s := self._brake.delay_s(self._reactor.seconds(), self._segments.excess):
            self._reactor.callLater(delay_s, item.done.callback, over)
        else:
            item.done.callback(over)

    def commit_has_failed(self, item: CommitItem, error: OSError) -> None:
        """Fail a commit as a whole, settlements included (`ICommitOwner`): a report and its bounces share their fate."""
        self._drafts.refused.add(item.drafts, may_be_found=may_be_found(error))
        for settlement in item.settlements:
            self.ledger.refuse(settlement)
        item.done.errback(as_unavailable(error))

    # out

    def take(self, area: Area, limit: int, now: float, per_message: int) -> Deferred[list[Message]]:
        return self._due_scan.take(area, limit, now, per_message)

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        touched = self._cluster_index.give_back(queue_ids, not_before) | self._memtable.give_back(queue_ids, not_before)
        self._waiters.fire_ready(touched)

    def ready(self, area: Area) -> Deferred[None]:
        return self._waiters.ready(area)

    def next_due(self, area: Area) -> float | None:
        dues = [
            due_at for due_at in (self._memtable.next_due(area), self._cluster_index.next_due(area)) if due_at is not None
        ]
        return min(dues, default=None)

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return self._contents.read(spool_id)

    # reading

    def summary(self) -> Deferred[Summary]:
        return Deferred.fromCoroutine(self.parts.search.summarize(self._admission.reason()))

    def counting_plan(self) -> ICountingPlan:
        return self.parts.search.plan(self._admission.reason())

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self.parts.search.search(wanted, after, limit))

    def hasten(self, latest: Latest, now: float) -> None:
        self.parts.hastening.hasten(latest, now)

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        # A line that is being moved would keep the time that its entry had when it was written.
        moved = self.checkpoints.run() if self.state.pending is not None else succeed(None)
        found = moved.addCallback(lambda _: Deferred.fromCoroutine(self._due_scan.flush(wanted, now)))
        return found.addCallbacks(self._flushed, as_storage_error)

    def _flushed(self, flushed: Flushed) -> Flushed:
        if flushed.entries:
            self._waiters.fire(Area.DEFERRED)
        return flushed
