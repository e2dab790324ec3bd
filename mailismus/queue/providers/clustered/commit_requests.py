"""Commit requests: from the request of a caller to an item of the journal.

    new mail in memory, the usual one    -> MessageItem -> journal
    messages, some of them large         -> their files are finished -> CommitItem -> journal
    settlements alone                    -> CommitItem -> journal; unknown entries are searched in the clusters, and settled

*Not here*: what becomes of an item (`control.commit_results`), records and indexes (`control.ledger`).
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.python.failure import Failure

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.commit_request import CommitRequest
from mailismus.queue.commits import DEFERRED_COMMITS, commit_deferred, error_of, tell
from mailismus.queue.entering import removals_of, split_ended
from mailismus.queue.interface import CommitListener, EndedEntries, M, Settlement, Submission
from mailismus.queue.providers.clustered.commit.items import CommitItem, MessageItem
from mailismus.queue.providers.clustered.control.ledger import begin_message, begin_new_message
from mailismus.queue.providers.clustered.format.record import FORMAT_WITH_WORDS
from mailismus.queue.providers.clustered.index.cluster_index import ClusteredEntry
from mailismus.queue.providers.clustered.parts import QueueParts
from mailismus.queue.providers.clustered.read.cluster_reader import Unread
from mailismus.queue.words import check_words
from mailismus.spool.draft import SpoolDraft


class CommitRequests:
    """Requests to one queue."""

    def __init__(self, parts: QueueParts) -> None:
        self._parts = parts
        self._ledger, self._commits, self._results = parts.ledger, parts.commits, parts.results
        self._cluster_index, self._limits = parts.state.cluster_index, parts.limits

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        """As `IQueue.begin_commit`."""
        if len(submissions) == 1 and not settlements and not ended:
            submission = submissions[0]
            draft, envelope, _, placements = submission
            if placements is None and envelope.words is None and isinstance(draft, SpoolDraft) and not draft.is_in_silo:
                content = draft.content()
                journaled = begin_new_message(submission, draft, content)
                self._commits.append(MessageItem(self._results, listener, mark, draft, journaled, content))
                return
        if check_words(submissions, settlements, self._limits.envelope):
            self._parts.opened.writer.require_format(FORMAT_WITH_WORDS)
        request = CommitRequest(submissions, *split_ended(settlements, ended))
        if submissions:
            self._submit(CommitItem(self._results, listener, mark), request)
        elif request.settled_count > self._limits.settlements:
            tell(request.commit_in_parts(self, self._limits.settlements), listener, mark)
        else:
            self._settle(CommitItem(self._results, listener, mark), request)

    # messages

    def _submit(self, item: CommitItem, request: CommitRequest) -> None:
        """Commit messages, with settlements or without."""
        item.drafts.extend(drafts := request.drafts())
        if not any(draft.is_in_silo for draft in drafts):
            self._append_request(item, request)
            return
        self._parts.pressure.begin_file()
        finished = gatherResults(
            [draft.finish(self._names_of(one)) for draft, one in zip(drafts, request.submissions, strict=True)],
            consumeErrors=True,
        )
        finished.addCallbacks(
            lambda _: self._append_request(item, request), self._not_finished, errbackArgs=(item,)
        ).addBoth(self._on_finished)

    def _names_of(self, submission: Submission) -> Sequence[int]:
        """Return the numbers of the recipients that have a name of their own for the message file."""
        count = len(submission.envelope.recipients)
        if count == 1 or not self._parts.release.has_links:
            return ()
        if submission.placements is None:
            return range(1, count + 1)
        return [placement.number for placement in submission.placements]

    def _not_finished(self, failure: Failure, item: CommitItem) -> None:
        """Fail a commit whose large message could not be made durable: no part of the commit counts."""
        cause = failure.value.subFailure if isinstance(failure.value, FirstError) else failure
        self._parts.drafts.refused.add(item.drafts, may_be_found=False)
        self._results.ended.fail(item, error_of(cause))

    def _on_finished(self, result: Failure | None) -> Failure | None:
        self._parts.pressure.end_file()
        self._parts.closing.check()
        return result

    def _append_request(self, item: CommitItem, request: CommitRequest) -> None:
        for submission, draft in zip(request.submissions, item.drafts, strict=True):
            item.add_message(begin_message(submission, draft))
        if request.settlements or request.ended:
            self._ledger.add_settlements(item, request.ended, request.settlements)
        self._append(item)

    def _append(self, item: CommitItem) -> None:
        """Append to the journal, if there is anything to write."""
        if item.size_bytes:
            self._commits.append(item)
        else:
            self._results.ended.add(item, ())
            self._parts.reactor.callLater(0, self._results.ended.tell)

    # settlements

    def _settle(self, item: CommitItem, request: CommitRequest) -> None:
        """Commit settlements alone."""
        unknown_ended, unknown = self._ledger.add_settlements(item, request.ended, request.settlements)
        if not (unknown_ended or unknown) or not self._cluster_index.clusters:
            self._append(item)
            return
        known: Deferred[Sequence[SpoolId]] = Deferred()
        listener, mark = item.listener, item.mark
        item.set_listener(DEFERRED_COMMITS, known)
        self._append(item)
        found = Deferred.fromCoroutine(self._settle_unknown([*unknown, *removals_of(unknown_ended)]))
        tell(gatherResults([known, found]).addCallback(lambda parts: [*parts[0], *parts[1]]), listener, mark)

    async def _settle_unknown(self, settlements: Sequence[Settlement]) -> Sequence[SpoolId]:
        """Settle entries that were not handed out: search the clusters for them. Entries that are not found ended before."""
        wanted = {settlement.queue_id for settlement in settlements}
        cluster_index = self._cluster_index
        for cluster in list(cluster_index.clusters.values()):
            lines = await self._parts.search.live_lines(cluster)
            if isinstance(lines, Unread):
                continue  # an entry that can't be found is delivered once more
            for line in lines:
                queue_id = QueueId(line.message.spool_id, line.entry.number)
                if queue_id in wanted and not cluster.is_hidden(line.offset):
                    cluster_index.hold(ClusteredEntry(line.message, line.entry, cluster, line.offset))
        found = [settlement for settlement in settlements if settlement.queue_id in cluster_index.out]
        return await commit_deferred(self, (), found) if found else ()
