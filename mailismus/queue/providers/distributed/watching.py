"""What a server looks at now and then: the database's clock, the dead queue, and what the broker or a dead server has left
behind."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.browse.forgotten import Forgotten
from mailismus.queue.providers.distributed.browse.refilling import Refilling
from mailismus.queue.providers.distributed.format.tables import DEAD
from mailismus.queue.providers.distributed.identity.clock import DatabaseClock
from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.failure import StoreFailure

EACH_S = 30.0
RARELY = 10
"""Of so many looks one is for what was forgotten."""


class Watching:
    """The looks of one server."""

    _log = Logger()

    def __init__(
        self, broker: IBroker, clock: DatabaseClock, refilling: Refilling, forgotten: Forgotten, reactor: IReactorTime
    ) -> None:
        self._broker, self._clock, self._refilling, self._reactor = broker, clock, refilling, reactor
        self._forgotten = forgotten
        self._looks = 0
        self._is_closed = False
        self.dead = 0
        """Messages in the dead queue, as of the last look."""

    async def start(self) -> None:
        """Look at the clock, and begin. Raises `NotDone`."""
        await self._clock.look()
        self._look()

    def close(self) -> None:
        """End."""
        self._is_closed = True

    def _look(self) -> None:
        if self._is_closed:
            return
        self._reactor.callLater(EACH_S, self._look)
        self._refilling.look()
        self._begin(self._clock.look)
        self._begin(self._look_at_dead)
        self._looks += 1
        if not self._looks % RARELY:
            self._begin(self._forgotten.look)

    def _begin(self, look: Callable[[], Coroutine[Deferred[Any], Any, None]]) -> None:
        Deferred.fromCoroutine(look()).addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("a look at the services broke", failure)

    async def _look_at_dead(self) -> None:
        before, self.dead = self.dead, await self._broker.depth(DEAD)
        if self.dead > before:
            self._log.error(
                "{queue} of the broker has {count} messages that no server can use: see docs/operating.",
                queue=DEAD,
                count=self.dead,
            )
