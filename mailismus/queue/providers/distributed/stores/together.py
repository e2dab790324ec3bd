"""Calls that are under way at the same time, and end together."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList

T = TypeVar("T")


async def together(calls: Iterable[Deferred[T] | Coroutine[Deferred[Any], Any, T]]) -> list[T]:
    """The results of all, in their order. When all have ended, raises what the first one raised that failed."""
    begun = [call if isinstance(call, Deferred) else Deferred.fromCoroutine(call) for call in calls]
    results: list[T] = []
    for is_success, result in await DeferredList(begun, consumeErrors=True):
        if not is_success:
            raise result.value  # type: ignore[attr-defined]  # a Failure
        results.append(result)
    return results
