"""No server serves the queue while it is checked: the command has the lock of its directory, and a lease like a server's.

*Rules*: where another server has a lease the command ends (75). Before each finding it is asked again whether one has, for a
server may start meanwhile. The lease is renewed while the command waits for a store; where it could not be renewed in time
the command ends (75): it may be run again.
"""

from __future__ import annotations

import os
import random
import socket

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.errors import StartError
from mailismus.queue.fsck.refusals import refuse_other_than_directories, refuse_other_user
from mailismus.queue.providers.distributed.format.version import SERVER, STATE
from mailismus.queue.providers.distributed.fsck.repairs import CORRUPT
from mailismus.queue.providers.distributed.identity.lease import RENEW_S, ServerLease
from mailismus.queue.providers.distributed.opening import OwnPlace, open_place
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.setup import missing_things, not_set_up


class ServingAlone:
    """The queue is this command's."""

    def __init__(self, settings: QueueSettings, reached: IReached) -> None:
        """Takes the lock. Raises `StartError`: 75 while a server has it, 77 where the directory is another user's."""
        self._reached = reached
        disk, bits = PosixDisk(), random.SystemRandom().getrandbits
        if disk.exists(settings.rootpath):
            refuse_other_than_directories(disk, {settings.rootpath: (SERVER, STATE, CORRUPT)})
            refuse_other_user(disk, settings.rootpath)
        self._owner = -1 - bits(62)
        """In the place of an epoch: no epoch is negative."""
        self._place: OwnPlace = open_place(disk, settings.rootpath, socket.gethostname(), bits)
        self._lease = ServerLease(reached.stores.rows, self._place.name, reached.elapsed)
        self._timer: IDelayedCall | None = None

    async def begin(self) -> None:
        """Acquire the lease. Raises `StartError`: 75 where another server has it, 78 where things are missing; `NotDone`."""
        reached = self._reached
        missing = await missing_things(reached.stores)
        if missing:
            raise not_set_up(missing)
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

    async def end(self) -> None:
        """Another server may begin."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        await self._lease.release()

    def release(self) -> None:
        """Give up the lock."""
        self._place.lock.release()
