"""What a server looks at now and then: the database's clock, the dead queue, and what the broker or a dead server has left
behind."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.queue.providers.distributed.browse.forgotten import Forgotten
from mailismus.queue.providers.distributed.browse.refilling import Refilling
from mailismus.queue.providers.distributed.format.tables import DEAD
from mailismus.queue.providers.distributed.identity.clock import DatabaseClock
from mailismus.queue.providers.distributed.regular import Regular
from mailismus.queue.providers.distributed.stores.broker import IBroker

EACH_S = 30.0
RARELY_S = 300.0
BROKE = "a look at the services broke"


class Watching:
    """The looks of one server."""

    _log = Logger()

    def __init__(
        self, broker: IBroker, clock: DatabaseClock, refilling: Refilling, forgotten: Forgotten, reactor: IReactorTime
    ) -> None:
        self._broker, self._clock, self._refilling, self._forgotten = broker, clock, refilling, forgotten
        self._at_refills, self._at_dead, self._at_clock = (Regular(EACH_S, reactor, BROKE) for _ in range(3))
        self._at_forgotten = Regular(RARELY_S, reactor, BROKE)
        self.dead = 0
        """Messages in the dead queue, as of the last look."""

    async def start(self) -> None:
        """Look at the clock, and begin. Raises `NotDone`."""
        await self._clock.look()
        self._at_refills.start(self._look_at_refills)
        self._at_dead.start(self._look_at_dead)
        self._at_clock.start(self._clock.look, EACH_S)
        self._at_forgotten.start(self._forgotten.look, RARELY_S)

    def close(self) -> None:
        """End."""
        for looks in (self._at_refills, self._at_dead, self._at_clock, self._at_forgotten):
            looks.close()

    async def _look_at_refills(self) -> None:
        self._refilling.look()

    async def _look_at_dead(self) -> None:
        before, self.dead = self.dead, await self._broker.depth(DEAD)
        if self.dead > before:
            self._log.error(
                "{queue} of the broker has {count} messages that no server can use: see docs/operating.",
                queue=DEAD,
                count=self.dead,
            )
