"""No server serves the queue while it is checked: the command has the lock of its directory, and a lease like a server's.

*Rules*: where another server has a lease the command ends (75). Before each finding it is asked again whether one has, for a
server may start meanwhile. Where the lease could not be renewed in time the command ends (75): it may be run again.
"""

from __future__ import annotations

import random
import socket

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.queue.fsck.refusals import refuse_other_than_directories, refuse_other_user
from mailismus.queue.providers.distributed.format.tables import TABLES
from mailismus.queue.providers.distributed.format.version import SERVER, STATE
from mailismus.queue.providers.distributed.fsck.repairs import CORRUPT
from mailismus.queue.providers.distributed.identity.agreements import agree_on_places
from mailismus.queue.providers.distributed.identity.gate import refuse_shut
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.opening import OwnPlace, open_place
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.setup import not_set_up
from mailismus.queue.providers.distributed.stopped.alone import AloneLease


async def count_servers(reached: IReached) -> int:
    """How many servers serve the queue; 0 too where a command has it for itself. Raises `StartError` (78) where its tables
    are not there, or this is not where it is, `NotDone`."""
    missing = await reached.stores.rows.missing(TABLES)
    if missing:
        raise not_set_up([f"table {name}" for name in missing])
    await agree_on_places(reached.stores)
    owners = await ServerLease(reached.stores.rows, "", reached.elapsed).others()
    return 0 if any(owner < 0 for owner in owners) else len(owners)


class ServingAlone:
    """The queue is this command's."""

    def __init__(self, settings: QueueSettings, reached: IReached) -> None:
        """Takes the lock. Raises `StartError`: 75 while a server has it, 77 where the directory is another user's."""
        self._reached = reached
        disk, bits = PosixDisk(), random.SystemRandom().getrandbits
        if disk.exists(settings.rootpath):
            refuse_other_than_directories(disk, {settings.rootpath: (SERVER, STATE, CORRUPT)})
            refuse_other_user(disk, settings.rootpath)
        self._place: OwnPlace = open_place(disk, settings.rootpath, socket.gethostname(), bits)
        self._lease = AloneLease(reached, self._place.name)

    async def begin(self) -> None:
        """Acquire the lease. Raises `StartError`: 75 where another server has it, or a conversion is at the queue, 78 where
        things are missing; `NotDone`."""
        await self._lease.begin()
        await refuse_shut(self._reached.stores.rows)

    async def check(self) -> None:
        """Raise `StartError` (75) where a server may serve the queue now, `NotDone`."""
        await self._lease.check()

    async def end(self) -> None:
        """Another server may begin."""
        await self._lease.end()

    def release(self) -> None:
        """Give up the lock."""
        self._place.lock.release()
