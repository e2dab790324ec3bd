"""Commits whose end is told by a Deferred, for callers that are not in the hot path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.errors import StorageError, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import CommitListener, EndedEntries, M, Settlement, Submission


class DeferredCommits:
    """A `CommitListener` whose marks are Deferreds. They fire as `IQueue.commit` says."""

    def on_durable(self, marks: Sequence[Deferred[Sequence[SpoolId]]], gone: Sequence[Sequence[SpoolId]]) -> None:
        for done, over in zip(marks, gone, strict=True):
            done.callback(over)

    def on_failed(self, marks: Sequence[Deferred[Sequence[SpoolId]]], error: StorageError) -> None:
        for done in marks:
            done.errback(error)


DEFERRED_COMMITS = DeferredCommits()


class BeginsCommits(Protocol):
    """The part of `IQueue` that is needed here."""

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None: ...


def commit_deferred(
    queue: BeginsCommits, submissions: Sequence[Submission], settlements: Sequence[Settlement]
) -> Deferred[Sequence[SpoolId]]:
    """As `IQueue.commit`, by `IQueue.begin_commit`."""
    done: Deferred[Sequence[SpoolId]] = Deferred()
    queue.begin_commit(submissions, settlements, (), DEFERRED_COMMITS, done)
    return done


def tell(done: Deferred[Sequence[SpoolId]], listener: CommitListener[M], mark: M) -> None:
    """Tell the listener of a commit whose end is known by a Deferred."""
    done.addCallbacks(
        lambda gone: listener.on_durable((mark,), (gone,)), lambda failure: listener.on_failed((mark,), error_of(failure))
    )


def error_of(failure: Failure) -> StorageError:
    """The error that a listener is told; what is no trouble of the storage is a defect of this program."""
    error = failure.value
    return error if isinstance(error, StorageError) else Unavailable(f"internal error: {error!r}")
