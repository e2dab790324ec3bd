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

from mailismus.errors import StorageError, Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.commits import DEFERRED_COMMITS, tell
from mailismus.queue.entering import removals_of, split_ended
from mailismus.queue.interface import (
    Area,
    CommitListener,
    EndedEntries,
    Filter,
    Flushed,
    IContent,
    ICountingPlan,
    IDraft,
    Latest,
    M,
    Message,
    Page,
    Settlement,
    Submission,
    Summary,
)
from mailismus.queue.providers.clustered.commit.items import CommitItem, MessageItem
from mailismus.queue.providers.clustered.control.ledger import begin_message, begin_new_message
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
        self._segments, self._waiters, self._results = parts.segments, parts.waiters, parts.results
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
        done: Deferred[Sequence[SpoolId]] = Deferred()
        self.begin_commit(submissions, settlements, (), DEFERRED_COMMITS, done)
        return done

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        if len(submissions) == 1 and not settlements and not ended:
            submission = submissions[0]
            draft, envelope, _, placements = submission
            if placements is None and envelope.words is None and isinstance(draft, SpoolDraft) and not draft.is_in_silo:
                content = draft.content()
                journaled = begin_new_message(submission, draft, content)
                self.commits.append(MessageItem(self._results, listener, mark, draft, journaled, content))
                return
        if check_words(submissions, settlements, self.max_envelope_bytes):
            self.parts.opened.writer.require_format(FORMAT_WITH_WORDS)
        if settlements:
            settlements, ended = split_ended(settlements, ended)
        if submissions:
            self._submit(CommitItem(self._results, listener, mark), submissions, settlements, ended)
        elif len(settlements) + sum([len(numbers) for _, numbers in ended]) > self._limits.settlements:
            tell(self._commit_in_parts(settlements, ended), listener, mark)
        else:
            self._settle(CommitItem(self._results, listener, mark), settlements, ended)

    def _settle(self, item: CommitItem, settlements: Sequence[Settlement], ended: Sequence[EndedEntries]) -> None:
        """Commit settlements alone."""
        unknown_ended, unknown = self.ledger.add_settlements(item, ended, settlements)
        if not (unknown_ended or unknown) or not self._cluster_index.clusters:
            self._append(item)
            return
        known: Deferred[Sequence[SpoolId]] = Deferred()
        listener, mark = item.listener, item.mark
        item.set_listener(DEFERRED_COMMITS, known)
        self._append(item)
        found = Deferred.fromCoroutine(self._settle_unknown(unknown, unknown_ended))
        tell(gatherResults([known, found]).addCallback(lambda parts: [*parts[0], *parts[1]]), listener, mark)

    def _submit(
        self,
        item: CommitItem,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
    ) -> None:
        """Commit messages, with settlements or without."""
        drafts = item.drafts
        is_streaming = False
        for submission in submissions:
            draft = submission.draft
            if not isinstance(draft, SpoolDraft):
                raise TypeError(f"a draft of another provider: {draft!r}")
            drafts.append(draft)
            is_streaming = is_streaming or draft.is_in_silo
        if not is_streaming:
            self._append_submissions(item, submissions, settlements, ended)
            return
        self.parts.pressure.begin_file()
        finished = gatherResults(
            [draft.finish(self._names_of(submission)) for draft, submission in zip(drafts, submissions, strict=True)],
            consumeErrors=True,
        )
        finished.addCallbacks(
            lambda _: self._append_submissions(item, submissions, settlements, ended),
            self._not_finished,
            errbackArgs=(item,),
        ).addBoth(self._on_finished)

    def _names_of(self, submission: Submission) -> Sequence[int]:
        """Return the numbers of the recipients that have a name of their own for the message file."""
        count = len(submission.envelope.recipients)
        if count == 1 or not self.parts.release.has_links:
            return ()
        if submission.placements is None:
            return range(1, count + 1)
        return [placement.number for placement in submission.placements]

    def _commit_in_parts(
        self, settlements: Sequence[Settlement], ended: Sequence[EndedEntries]
    ) -> Deferred[Sequence[SpoolId]]:
        """Commit more settlements than one batch is sure to hold."""
        at_once = self._limits.settlements
        replaced = [(settlements[at : at + at_once], ()) for at in range(0, len(settlements), at_once)]
        removed = [
            ((), ((spool_id, numbers[at : at + at_once]),))
            for spool_id, numbers in ended
            for at in range(0, len(numbers), at_once)
        ]
        parts: list[Deferred[Sequence[SpoolId]]] = []
        for part_settlements, part_ended in (*replaced, *removed):
            done: Deferred[Sequence[SpoolId]] = Deferred()
            self.begin_commit((), part_settlements, part_ended, DEFERRED_COMMITS, done)
            parts.append(done)
        return gatherResults(parts).addCallback(lambda over: [spool_id for part in over for spool_id in part])

    async def _settle_unknown(self, settlements: list[Settlement], ended: list[EndedEntries]) -> Sequence[SpoolId]:
        """Settle entries that were not handed out: search the clusters for them. Entries that are not found ended before."""
        settlements += removals_of(ended)
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
        cause = failure.value.subFailure.value if isinstance(failure.value, FirstError) else failure.value
        self._drafts.refused.add(item.drafts, may_be_found=False)
        self._results.fail(item, cause if isinstance(cause, StorageError) else Unavailable(f"internal error: {cause!r}"))

    def _on_finished(self, result: Failure | None) -> Failure | None:
        self.parts.pressure.end_file()
        self.parts.closing.check()
        return result

    def _append_submissions(
        self,
        item: CommitItem,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
    ) -> None:
        for submission, draft in zip(submissions, item.drafts, strict=True):
            item.add_message(begin_message(submission, draft))
        if settlements or ended:
            self.ledger.add_settlements(item, ended, settlements)
        self._append(item)

    def _append(self, item: CommitItem) -> None:
        """Append to the journal, if there is anything to write."""
        if item.size_bytes:
            self.commits.append(item)
        else:
            self._results.add(item, ())
            self._reactor.callLater(0, self._results.tell)

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
