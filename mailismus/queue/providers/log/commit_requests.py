"""Commit requests: from the request of a caller to an item of the log.

    new mail in memory, the usual one    -> MessageItem -> log
    messages, some of them large         -> their files are finished -> CommitItem -> log
    settlements                          -> contents that are needed are read -> CommitItem -> log

*Rules*: a request about an entry that has a settlement under way waits for that one's end.

*Not here*: the records of settlements (`commit.asked`), what becomes of an item (`control.results`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.python.failure import Failure

from mailismus.journal.commit import IItem
from mailismus.mail.ids import SpoolId
from mailismus.queue.commit_request import CommitRequest
from mailismus.queue.commits import error_of, tell
from mailismus.queue.entering import split_ended
from mailismus.queue.interface import CommitListener, EndedEntries, M, Settlement, Submission
from mailismus.queue.providers.log.commit.items import LogCommitItem, LogMessageItem
from mailismus.queue.providers.log.commit.messages import begin_message, begin_new_message
from mailismus.queue.providers.log.parts import LogParts
from mailismus.queue.words import check_words
from mailismus.spool.draft import SpoolDraft


class LogRequests:
    """Requests to one queue (`journal.batch_events.IBatchListener`)."""

    def __init__(self, parts: LogParts) -> None:
        self._parts = parts
        self._asked, self._commits, self._results = parts.asked, parts.commits, parts.results
        self._limits = parts.limits
        self._late: list[tuple[LogCommitItem, CommitRequest]] = []
        """Requests about entries with a settlement under way."""
        self._loading = 0
        """Requests whose entries are being loaded."""

    @property
    def is_idle(self) -> bool:
        """Whether no request waits."""
        return not self._late and not self._loading

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
                known = begin_new_message(submission, draft, content)
                self._commits.append(LogMessageItem(self._results, listener, mark, draft, known, content))
                return
        check_words(submissions, settlements, self._limits.envelope)
        request = CommitRequest(submissions, *split_ended(settlements, ended))
        if submissions:
            self._submit(LogCommitItem(self._results, listener, mark), request)
        elif request.settled_count > self._limits.settlements:
            tell(request.commit_in_parts(self, self._limits.settlements), listener, mark)
        else:
            self._append_request(LogCommitItem(self._results, listener, mark), request)

    def _submit(self, item: LogCommitItem, request: CommitRequest) -> None:
        """Commit messages, with settlements or without."""
        item.drafts.extend(drafts := request.drafts())
        if not any(draft.is_in_silo for draft in drafts):
            self._append_request(item, request)
            return
        self._parts.pressure.begin_file()
        finished = gatherResults([draft.finish() for draft in drafts], consumeErrors=True)
        finished.addCallbacks(
            lambda _: self._append_request(item, request), self._not_finished, errbackArgs=(item,)
        ).addBoth(self._on_finished)

    def _not_finished(self, failure: Failure, item: LogCommitItem) -> None:
        """Fail a commit whose large message could not be made durable: no part of the commit counts."""
        cause = failure.value.subFailure if isinstance(failure.value, FirstError) else failure
        self._parts.drafts.refused.add(item.drafts, may_be_found=False)
        self._results.ended.fail(item, error_of(cause))

    def _on_finished(self, result: Any) -> Any:
        self._parts.pressure.end_file()
        self._parts.closing.check()
        return result

    def _append_request(self, item: LogCommitItem, request: CommitRequest) -> None:
        settlements, ended = request.settlements, request.ended
        if (settlements or ended) and self._asked.is_waiting_for(ended, settlements):
            self._late.append((item, request))
            return
        if (settlements or ended) and (unknown := self._asked.unknown_among(ended, settlements)):
            self._load(item, request, unknown)
            return
        self._append_known(item, request)

    def _load(self, item: LogCommitItem, request: CommitRequest, unknown: set[SpoolId]) -> None:
        """Load what nobody has taken, then go on. What is not found ended before."""
        loaded = Deferred.fromCoroutine(self._parts.loading.load_messages(unknown))
        self._loading += 1
        loaded.addBoth(self._on_loaded, item, request)

    def _on_loaded(self, result: Any, item: LogCommitItem, request: CommitRequest) -> None:
        self._loading -= 1
        if isinstance(result, Failure):
            self._commits.break_down(result)
        if self._asked.is_waiting_for(request.ended, request.settlements):
            self._late.append((item, request))
        else:
            self._append_known(item, request)

    def _append_known(self, item: LogCommitItem, request: CommitRequest) -> None:
        settlements, ended = request.settlements, request.ended
        for submission, draft in zip(request.submissions, item.drafts, strict=True):
            known = begin_message(submission, draft)
            item.may_fail = True
            if known is not None:
                item.add_message(known)
        if settlements or ended:
            self._asked.add(item, ended, settlements, self._parts.now())
        if item.size_bytes:
            self._commits.append(item)
            return
        for draft in item.drafts:
            draft.drop()
        self._results.ended.add(item, ())
        self._parts.reactor.callLater(0, self._results.ended.tell)

    # batches

    def on_durable(self) -> None:
        self._try_late()

    def on_failed(self) -> Sequence[IItem]:
        if self._late:
            self._parts.reactor.callLater(0, self._try_late)
        return ()

    def _try_late(self) -> None:
        """Try again what waited for settlements."""
        if self._late:
            late, self._late = self._late, []
            for item, request in late:
                self._append_request(item, request)
