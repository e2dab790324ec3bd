"""Commits whose end is told by a Deferred, for callers that are not in the hot path."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.errors import StorageError, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import CommitListener, M


class DeferredCommits:
    """A `CommitListener` whose marks are Deferreds. They fire as `IQueue.commit` says."""

    def on_durable(self, marks: Sequence[Deferred[Sequence[SpoolId]]], gone: Sequence[Sequence[SpoolId]]) -> None:
        for done, over in zip(marks, gone, strict=True):
            done.callback(over)

    def on_failed(self, marks: Sequence[Deferred[Sequence[SpoolId]]], error: StorageError) -> None:
        for done in marks:
            done.errback(error)


DEFERRED_COMMITS = DeferredCommits()


def tell(done: Deferred[Sequence[SpoolId]], listener: CommitListener[M], mark: M) -> None:
    """Tell the listener of a commit whose end is known by a Deferred."""
    done.addCallbacks(
        lambda gone: listener.on_durable((mark,), (gone,)), lambda failure: listener.on_failed((mark,), _error_of(failure))
    )


def _error_of(failure: Failure) -> StorageError:
    error = failure.value
    return error if isinstance(error, StorageError) else Unavailable(f"internal error: {error!r}")
