"""Passes over all contents: those that nothing names are removed, and what the index has of their messages.

    keys of days before yesterday -> suspects: nothing names them -> all shares that live are read: none has them
                                  -> asked once more -> index rows, then the content are removed

A crash between a content and its rows leaves one, and so does a content that could not be removed when its message was over.

*Rules*: the age of a content is its day by the database's clock: what came in since the day before yesterday ended is left
alone, whatever a commit is doing. A turn does a bounded part of the work, and the next one goes on there; at most
`MOST_SUSPECTS` are kept in memory. Where a share can't be read nothing is removed: it may be its content. Of the servers one
sweeps: that of the oldest epoch which has a lease.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Gap
from mailismus.queue.providers.distributed.browse.partition import LivingShare
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.format.share import to_signed
from mailismus.queue.providers.distributed.format.tables import MAILS
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.regular import Regular
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.rows import Erase
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.sweep.naming import ContentNaming

LOOK_S = 60.0
REST_S = 3600.0
"""Between two passes."""
KEYS = 200
"""Contents that a turn looks at."""
SHARES = 2000
"""Shares that a turn reads, where there are suspects."""
MOST_SUSPECTS = 500
DAY_S = 86_400
_MAIL = "mail/"
_KEY = re.compile(r"mail/([0-9]{1,9})/([0-9a-f]{16})(?:/lost)?")


class ContentSweep:
    """The sweep of one server. `now`: UTC seconds."""

    _log = Logger()

    def __init__(
        self,
        stores: Stores,
        naming: ContentNaming,
        starts: Starts,
        lease: ServerLease,
        reactor: IReactorTime,
        now: Callable[[], float],
    ) -> None:
        self._stores, self._naming, self._starts, self._lease = stores, naming, starts, lease
        self._reactor, self._now = reactor, now
        self._looking = Regular(LOOK_S, reactor, "contents that nothing names can't be looked for")
        self._rests_until = float("-inf")
        self._after = ""
        self._is_read = False
        """Whether all keys of this pass were read."""
        self._suspects: dict[str, SpoolId] = {}
        self._walk: AsyncIterator[LivingShare] | None = None
        self._gaps: list[Gap] = []
        self.removed = 0
        """Contents that were removed so far."""

    def start(self) -> None:
        """Begin."""
        self._looking.start(self.look, LOOK_S)

    def close(self) -> None:
        """End."""
        self._looking.close()

    async def look(self) -> None:
        """Do the next part. Raises `NotDone`, `Unanswered`."""
        if self._reactor.seconds() < self._rests_until or not await self._lease.is_oldest():
            return
        if not (self._is_read or len(self._suspects) >= MOST_SUSPECTS):
            await self._read_keys()
        elif not self._suspects or await self._has_read_shares():
            await self._remove()

    async def _read_keys(self) -> None:
        now = await self._stores.rows.now()
        keys = await self._stores.objects.keys(_MAIL, self._after, KEYS)
        for key in keys:
            found = _KEY.fullmatch(key)
            if found is not None and int(found[1]) < now // DAY_S - 1:
                spool_id = SpoolId(int(found[2], 16))
                if not await self._naming.is_named(spool_id, key, now):
                    self._suspects[key] = spool_id
        self._is_read = len(keys) < KEYS
        self._after = keys[-1] if keys else ""

    async def _has_read_shares(self) -> bool:
        """Read more of all shares that live; what one of them has is no suspect. Return whether all were read."""
        if self._walk is None:
            self._gaps = []
            self._walk = self._living()
        try:
            for _ in range(SHARES):
                living = await anext(self._walk, None)
                if living is None:
                    self._walk = None
                    return True
                self._suspects.pop(living.share.blob.key, None)
        except StoreFailure:
            self._walk = None  # an iterator that has failed is at its end
            raise
        return False

    async def _living(self) -> AsyncIterator[LivingShare]:
        for area in Area:
            async for living in self._starts.living(area, self._now(), self._gaps):
                yield living

    async def _remove(self) -> None:
        """Remove the suspects, and end this pass or go on with it."""
        now, removed = await self._stores.rows.now(), list[str]()
        while self._suspects and not self._gaps:
            key, spool_id = next(iter(self._suspects.items()))
            if not await self._naming.is_named(spool_id, key, now):
                if await self._naming.is_index_left(spool_id, now):
                    await self._stores.rows.write([Erase(MAILS, (to_signed(spool_id),), self._now() + 0.001)])
                await self._stores.objects.remove(key)
                self.removed += 1
                removed.append(key)
            del self._suspects[key]
        if removed:
            self._log.warn(
                "{count} contents that no message has were removed, the first is {key}.", count=len(removed), key=removed[0]
            )
        if self._gaps:
            self._log.warn("A share can't be read: contents that no message has are left. See mailismus fsck.")
        self._suspects = {}
        if self._is_read:
            self._after, self._is_read = "", False
            self._rests_until = self._reactor.seconds() + REST_S
