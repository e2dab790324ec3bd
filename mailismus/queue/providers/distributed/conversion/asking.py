"""A call of a store is repeated, the same, where its answer did not come."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.stores.failure import Unanswered

TRIES = 5


async def until_answered(call: Callable[[], Deferred[None]]) -> None:
    """Call until it is answered. Raises `NotDone`; `Unanswered` after `TRIES`."""
    for _ in range(TRIES - 1):
        try:
            await call()
        except Unanswered:
            continue
        return
    await call()
