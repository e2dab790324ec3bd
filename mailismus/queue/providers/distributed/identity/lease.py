"""Leases: one row for each server that runs, under an epoch of its own. What an epoch has claimed is its own as long.

    acquire -> renewed each `RENEW_S` -> sure for `SURE_S` -> void after `LEASE_S` -> acquired anew, under another epoch

*Rules*: a server begins nothing whose last renewal was begun more than `SURE_S` ago, by a clock that counts the time that
a machine sleeps; others take over what it had when its lease is void, `LEASE_S` after it was last renewed. An epoch whose
lease was void is never used for a lease again. A server that starts again in its own directory, whose lock it holds, ends
the leases of those before: they do not run any more. Leases are set by compare and set alone: their times are the
database's. A renewal whose answer comes when the lease may be void does not count: others may have seen no lease before it
was carried out. (One that some nodes had accepted, and none has answered, is carried out by the next one.)
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.format.tables import SERVERS
from mailismus.queue.providers.distributed.identity.gate import refuse_shut
from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure, Unanswered
from mailismus.queue.providers.distributed.stores.rows import IRows

LEASE_S = 30
RENEW_S = 10.0
SURE_S = 20.0
GRAIN_S = 1.0
"""The database counts the time that a row has to live in whole seconds."""
TRIES = 20
_NOBODY = ""
"""The name in a lease that was ended, until its row has gone."""


@attrs.frozen
class OtherLeases:
    """Epochs of other servers. `ended`: those whose leases were ended in the last `LEASE_S`, by a clean stop or a start in
    the same directory: they may have been written for a moment ago. `newest`: of all leases that were seen, its own too."""

    live: frozenset[int]
    ended: frozenset[int]
    newest: int

    def runs(self, epoch: int) -> bool:
        """Whether another server has, or may have, a lease under it: of what began since nothing is known."""
        return epoch in self.live or epoch > self.newest


class ServerLease:
    """The lease of one server. `server`: its name, the same after each start in the same directory."""

    def __init__(self, rows: IRows, server: str, elapsed: Callable[[], float]) -> None:
        self._rows, self.server, self.elapsed = rows, server, elapsed
        self.epoch = 0
        """Of the lease; 0: none was acquired."""
        self._sure_until = float("-inf")
        self._newest = 0

    @property
    def is_sure(self) -> bool:
        """Whether no other server may have taken over what this one has."""
        return self.elapsed() < self._sure_until

    @property
    def left_s(self) -> float | None:
        """What is left of it, at least; None: it was lost, or given up."""
        left = self._sure_until - self.elapsed() + LEASE_S - SURE_S
        return left if left > 0 else None

    @property
    def renewed_in_s(self) -> float:
        """Seconds until it is to be renewed; 0: it was to be."""
        return max(0.0, self._sure_until - self.elapsed() - (SURE_S - RENEW_S))

    async def serve(self, new_epoch: Callable[[], Coroutine[Deferred[Any], Any, int]]) -> None:
        """Acquire one as a server; not where a conversion is at the queue, which would wait for its end. Raises `NotDone`,
        and `StartError` for a conversion."""
        await refuse_shut(self._rows)  # first: no command meets a lease that ends at once
        await self._acquire(await new_epoch(), is_to_serve=True)

    async def acquire(self, epoch: int) -> None:
        """Acquire one under a new epoch, and end those of servers before in the same directory. Raises `NotDone`."""
        await self._acquire(epoch, is_to_serve=False)

    async def _acquire(self, epoch: int, *, is_to_serve: bool) -> None:
        for other, name in (await self._names()).items():
            if name == self.server:
                await self._end(other)
        for _ in range(TRIES):
            begun = self.elapsed()
            try:
                found = await self._rows.add(SERVERS, (epoch,), {"name": self.server}, LEASE_S)
            except Unanswered:
                continue
            if found is None or found["name"] == self.server:
                if is_to_serve:
                    await self._look_at_gate(epoch)
                self.epoch, self._sure_until = epoch, begun + SURE_S
                return
            break
        raise NotDone("rows", "the lease of this server could not be acquired")

    async def _look_at_gate(self, epoch: int) -> None:
        try:
            await refuse_shut(self._rows)
        except (StartError, StoreFailure):
            await self._end(epoch)
            raise

    async def renew(self) -> bool:
        """Renew it. Return False where it was void, or may have been: others may have taken over. Raises `NotDone`,
        `Unanswered`: it may become so, unless it is renewed again soon."""
        begun = self.elapsed()
        mine = {"name": self.server}
        found = await self._rows.change(SERVERS, (self.epoch,), mine, mine, LEASE_S)
        if found is None and (self.left_s or 0.0) > GRAIN_S:
            self._sure_until = begun + SURE_S
            return True
        self._sure_until = float("-inf")
        return False

    async def release(self) -> None:
        """Others may take over at once."""
        self._sure_until = float("-inf")
        await self._end(self.epoch)

    async def others(self) -> frozenset[int]:
        """The epochs of the leases of other servers. Raises `NotDone`."""
        return (await self.look()).live

    async def look(self) -> OtherLeases:
        """As `others`, and those that were ended. Raises `NotDone`."""
        names = await self._names()
        others = [epoch for epoch in names if epoch != self.epoch]
        live = frozenset(epoch for epoch in others if names[epoch] != _NOBODY)
        self._newest = max(self._newest, self.epoch, *others)
        return OtherLeases(live, frozenset(others) - live, self._newest)

    async def is_oldest(self) -> bool:
        """Whether it is sure, and no other server has one of an older epoch. Raises `NotDone`."""
        others = await self.others()
        return self.is_sure and min(others, default=self.epoch) >= self.epoch

    async def is_live(self, epoch: int) -> bool:
        """Whether an epoch has a lease. Raises `NotDone`."""
        row = await self._rows.row(SERVERS, (epoch,))
        return row is not None and bool(row["name"])

    async def _names(self) -> dict[int, str]:
        """The names in all leases, by epoch."""
        found: dict[int, str] = {}
        for row in await self._rows.all_rows(SERVERS):
            epoch, name = row["epoch"], row["name"]
            if isinstance(epoch, int) and isinstance(name, str):
                found[epoch] = name
        return found

    async def _end(self, epoch: int) -> None:
        try:
            await self._rows.change(SERVERS, (epoch,), {"name": _NOBODY}, {"name": self.server}, LEASE_S)
        except StoreFailure:
            return  # it becomes void
