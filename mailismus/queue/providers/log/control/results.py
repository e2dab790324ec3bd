"""Commit results: the steps after a commit became durable, or failed, and the listeners that are told of it.

    batch durable -> each item is applied to the working set -> each listener is told once, of all its commits

*Not here*: how listeners are told (`queue.files.ended_commits`), and what
follows from a batch as a whole (`control.moves`, `control.rounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.interfaces import IReactorTime

from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.refusals import as_unavailable, may_be_found
from mailismus.queue.files.ended_commits import EndedCommits
from mailismus.queue.providers.log.commit.items import LogCommitItem, LogMessageItem, MoveItem, StartItem
from mailismus.queue.providers.log.control.ledger import LogLedger
from mailismus.queue.providers.log.control.waiters import LogWaiters
from mailismus.spool.draft import RefusedDrafts


class LogResults:
    """Results of the commits of one queue (`commit.items.ILogOwner`, `journal.batch_events.IBatchListener`). `now`: UTC
    seconds."""

    def __init__(
        self,
        ledger: LogLedger,
        commits: GroupCommit,
        refused: RefusedDrafts,
        waiters: LogWaiters,
        reactor: IReactorTime,
        now: Callable[[], float],
    ) -> None:
        self._ledger, self._commits, self._refused = ledger, commits, refused
        self._waiters, self._reactor, self._now = waiters, reactor, now
        self.ended = EndedCommits()

    # called by items

    def message_is_durable(self, item: LogMessageItem, segment: int, offset: int) -> None:
        batch = self._commits.written
        item.draft.keep()
        self._ledger.arrive_new(item, batch.sequence, offset - batch.offset, segment, offset, self._now())
        self.ended.add(item, ())

    def message_has_failed(self, item: LogMessageItem, error: OSError) -> None:
        self._refused.add((item.draft,), may_be_found=may_be_found(error))
        self.ended.fail(item, as_unavailable(error))

    def commit_is_durable(self, item: LogCommitItem, segment: int, offset: int) -> None:
        batch = self._commits.written
        base, sequence = batch.offset, batch.sequence
        ledger, now = self._ledger, self._now()
        for draft in item.drafts:
            draft.keep()
        for new in item.messages:
            ledger.arrive(new, sequence, base, segment, offset, now)
        gone = [spool_id for spool_id, numbers in item.ended if ledger.end(spool_id, numbers)]
        for new in item.replaced:
            ledger.replace(new, sequence, base, segment, offset, now)
        ledger.leave(item, sequence)
        self.ended.add(item, gone)

    def commit_has_failed(self, item: LogCommitItem, error: OSError) -> None:
        """Fail a commit as a whole, settlements included: a report and its bounces share their fate."""
        self._refused.add(item.drafts, may_be_found=may_be_found(error))
        touched = self._ledger.refuse(item, self._now())
        if touched:
            self._reactor.callLater(0, self._waiters.fire, touched)
        self.ended.fail(item, as_unavailable(error))

    def move_is_durable(self, item: MoveItem, segment: int, offset: int) -> None:
        batch = self._commits.written
        self._ledger.move(item, batch.sequence, batch.offset, segment, offset, self._now())

    def starts_are_durable(self, item: StartItem, segment: int, offset: int) -> None:
        self._ledger.start(item.envelopes, self._commits.written.sequence)

    # batches

    def on_durable(self) -> None:
        self.ended.tell()

    def on_failed(self) -> Sequence[IItem]:
        return ()
