"""A command that needs the queue for itself has a lease like a server's, and no other one is there.

*Rules*: where another server has a lease the command ends (75). The lease is renewed while the command waits for a store.
"""

from __future__ import annotations

import os
import random

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.identity.agreements import agree_on_places
from mailismus.queue.providers.distributed.identity.clock import refuse_wrong_clock
from mailismus.queue.providers.distributed.identity.lease import RENEW_S, ServerLease
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.setup import missing_things, not_set_up


class AloneLease:
    """The lease of a command. `name`: by which servers know it; a lease of the same name is ended. Empty: one of its own."""

    def __init__(self, reached: IReached, name: str = "") -> None:
        self._reached = reached
        self._owner = -1 - random.SystemRandom().getrandbits(62)
        """In the place of an epoch: no epoch is negative."""
        self._lease = ServerLease(reached.stores.rows, name or f"command {-self._owner:x}", reached.elapsed)
        self._timer: IDelayedCall | None = None

    async def begin(self) -> None:
        """Acquire the lease; `end` is called whatever becomes of it. Raises `StartError`: 75 where another server has one or
        the clock of this host is wrong, 78 where things are missing; `NotDone`."""
        reached = self._reached
        missing = await missing_things(reached.stores)
        if missing:
            raise not_set_up(missing)
        await agree_on_places(reached.stores)
        await refuse_wrong_clock(reached.stores.rows, reached.now)
        await self._lease.acquire(self._owner)
        await self.check()
        self._timer = reached.timers.callLater(RENEW_S, self._renew)

    async def check(self) -> None:
        """Raise `StartError` (75) where a server may serve the queue now, `NotDone`."""
        if not self._lease.is_sure:
            raise StartError(os.EX_TEMPFAIL, "the lease of the queue could not be renewed in time: run the command again")
        others = await self._lease.others()
        if others:
            text = f"{len(others)} other servers serve this queue: stop them before, and wait 30 s for those that are dead"
            raise StartError(os.EX_TEMPFAIL, text)

    def _renew(self) -> None:
        self._timer = self._reached.timers.callLater(RENEW_S, self._renew)
        Deferred.fromCoroutine(self._lease.renew()).addErrback(lambda _: None)  # `check` tells

    def close(self) -> None:
        """End it, and the connections of the command. Blocks."""
        try:
            self._reached.wait(self.end())
        except StartError:
            pass  # the lease becomes void
        finally:
            self._reached.close()

    async def end(self) -> None:
        """Another server may begin. Harmless where the lease was not acquired."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        if self._lease.epoch:
            await self._lease.release()
