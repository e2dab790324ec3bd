"""A call that is given up at a time, though its store may still answer."""

from __future__ import annotations

from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.stores.failure import Unanswered

T = TypeVar("T")


def in_time(call: Deferred[T], late: Deferred[None]) -> Deferred[T]:
    """The result of a call; `Unanswered` where `late` fires first: a later result is dropped. Otherwise `late` is
    cancelled."""
    result: Deferred[T] = Deferred()

    def give_up(_: None) -> None:
        if not result.called:
            result.errback(Unanswered("stores", "no answer in time"))

    def end(value: Any) -> None:
        if not result.called:
            late.cancel()
            result.callback(value)  # a Failure takes the way of errors

    late.addCallbacks(give_up, _drop_cancelled)
    call.addBoth(end)
    return result


def _drop_cancelled(failure: Failure) -> None:
    failure.trap(CancelledError)
