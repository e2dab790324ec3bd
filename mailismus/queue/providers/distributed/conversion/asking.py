"""A call of a store is repeated, the same, where its answer did not come."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.stores.failure import Unanswered

TRIES = 5

P = ParamSpec("P")


async def until_answered(call: Callable[P, Deferred[None]], *args: P.args, **words: P.kwargs) -> None:
    """Call with these until it is answered. Raises `NotDone`; `Unanswered` after `TRIES`."""
    for _ in range(TRIES - 1):
        try:
            await call(*args, **words)
        except Unanswered:
            continue
        return
    await call(*args, **words)
