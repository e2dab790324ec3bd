"""Commit results: the steps after a commit became durable, or failed, and the listeners that are told of it.

    batch durable -> each commit is applied to the indexes -> each listener is told once, of all its commits

*Not here*: how listeners are told (`queue.files.ended_commits`), and what
follows from a batch as a whole (`control.batch_results`).
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.interfaces import IReactorTime

from mailismus.journal.commit import IItem
from mailismus.journal.refusals import as_unavailable, may_be_found
from mailismus.journal.throttle import CommitThrottle
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.ended_commits import EndedCommits
from mailismus.queue.providers.clustered.checkpoint.run import CheckpointRunner
from mailismus.queue.providers.clustered.checkpoint.segments import JournalSegments
from mailismus.queue.providers.clustered.commit.items import CommitItem, MessageItem
from mailismus.queue.providers.clustered.control.ledger import Ledger
from mailismus.queue.providers.clustered.index.state import QueueState
from mailismus.spool.draft import RefusedDrafts


class CommitResults:
    """Results of the commits of one queue (`commit.items.ICommitOwner`, `journal.batch_events.IBatchListener`)."""

    def __init__(
        self,
        state: QueueState,
        ledger: Ledger,
        checkpoints: CheckpointRunner,
        segments: JournalSegments,
        refused: RefusedDrafts,
        brake: CommitThrottle,
        reactor: IReactorTime,
        *,
        keeps_nothing_back: bool,
    ) -> None:
        """`keeps_nothing_back`: a commit of messages waits until its entries are in clusters."""
        self._state, self._ledger, self._checkpoints = state, ledger, checkpoints
        self._segments, self._refused, self._brake, self._reactor = segments, refused, brake, reactor
        self._keeps_nothing_back = keeps_nothing_back
        self.ended = EndedCommits()

    # called by items

    def message_is_durable(self, item: MessageItem, segment: int, offset: int) -> None:
        item.draft.keep()
        self._ledger.arrive_new(item.journaled, segment, offset + item.content_offset, self._state.now())
        if self._keeps_nothing_back or self._segments.excess:
            self._add_later(item)
        else:
            self.ended.add(item, ())

    def message_has_failed(self, item: MessageItem, error: OSError) -> None:
        self._refused.add((item.draft,), may_be_found=may_be_found(error))
        self.ended.fail(item, as_unavailable(error))

    def commit_is_durable(self, item: CommitItem, segment: int, offset: int) -> None:
        ledger, now = self._ledger, self._state.now()
        for (journaled, content_offset), draft in zip(item.messages, item.drafts, strict=True):
            draft.keep()
            ledger.arrive(journaled, segment, offset + content_offset, now)
        gone: list[SpoolId] = []
        for spool_id, numbers in item.ended:
            if ledger.end(spool_id, numbers):
                gone.append(spool_id)
        for settlement in item.settlements:
            ledger.replace(settlement, now)
        if item.messages and (self._keeps_nothing_back or self._segments.excess):
            self._add_later(item, gone)
        else:
            self.ended.add(item, gone)

    def _add_later(self, item: CommitItem | MessageItem, gone: Sequence[SpoolId] = ()) -> None:
        """Tell of a commit of messages when its entries are in clusters, or when the throttle allows it."""
        if self._keeps_nothing_back:
            self._checkpoints.run_over_all().addCallback(lambda _: self._tell_late(item, gone))
        else:
            delay_s = self._brake.delay_s(self._reactor.seconds(), self._segments.excess)
            self._reactor.callLater(delay_s, self._tell_late, item, gone)

    def commit_has_failed(self, item: CommitItem, error: OSError) -> None:
        """Fail a commit as a whole, settlements included: a report and its bounces share their fate."""
        self._refused.add(item.drafts, may_be_found=may_be_found(error))
        self._ledger.refuse(item)
        self.ended.fail(item, as_unavailable(error))

    def _tell_late(self, item: CommitItem | MessageItem, gone: Sequence[SpoolId]) -> None:
        self.ended.add(item, gone)
        self.ended.tell()

    # events of batches

    def on_durable(self) -> None:
        self.ended.tell()

    def on_failed(self) -> Sequence[IItem]:
        return ()
