"""The lease: one server at a time serves the queue.

    acquire -> renewed each `RENEW_S` -> sure for `SURE_S` -> void after `LEASE_S` -> another server's
                                                                                   -> acquired again, once it is free

*Rules*: a server hands nothing out whose last renewal was begun more than `SURE_S` ago, by a clock that counts the time that
a machine sleeps; another one begins when the lease is void, `LEASE_S` after it was last renewed. A server that starts again
in its own directory, whose lock it holds, ends the lease of the one before: that one does not run any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.format.tables import EPOCHS, LEASES
from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure, Unanswered
from mailismus.queue.providers.distributed.stores.rows import IRows

NAME = "server"
LEASE_S = 30
RENEW_S = 10.0
SURE_S = 20.0
TRIES = 20
_NOBODY = 0


class ServerLease:
    """The lease, for one server. `server`: its name, the same after each start in the same directory."""

    def __init__(self, rows: IRows, server: str, elapsed: Callable[[], float]) -> None:
        self._rows, self._server, self._elapsed = rows, server, elapsed
        self._epoch = 0
        self._sure_until = float("-inf")

    @property
    def is_sure(self) -> bool:
        """Whether no other server may serve the queue now."""
        return self._elapsed() < self._sure_until

    async def acquire(self, epoch: int) -> None:
        """Acquire it under an epoch of this server. Raises `StartError` (75) while another server has it, `NotDone`."""
        self._epoch = epoch
        for _ in range(TRIES):
            begun = self._elapsed()
            try:
                row = await self._rows.add(LEASES, (NAME,), {"owner": epoch}, LEASE_S)
                owner = None if row is None else row["owner"]
                if row is None or owner == epoch:
                    self._sure_until = begun + SURE_S
                    return
                holder = await self._holder(owner)
                if owner != _NOBODY and holder != self._server:
                    text = f"another server, {holder}, serves this queue: only one does at a time"
                    raise StartError(os.EX_TEMPFAIL, text)
                if await self._rows.change(LEASES, (NAME,), {"owner": epoch}, {"owner": owner}, LEASE_S) is None:
                    self._sure_until = begun + SURE_S
                    return
            except Unanswered:
                continue
        raise NotDone("rows", f"the lease of the queue changed {TRIES} times meanwhile")

    async def renew(self) -> bool:
        """Renew it. Return False where another server has it; where that is not known it may become void."""
        begun = self._elapsed()
        mine = {"owner": self._epoch}
        try:
            found = await self._rows.change(LEASES, (NAME,), mine, mine, LEASE_S)
            if found is not None and found["owner"] in (None, _NOBODY):
                found = await self._rows.add(LEASES, (NAME,), mine, LEASE_S)
        except StoreFailure:
            return True
        if found is None or found["owner"] == self._epoch:
            self._sure_until = begun + SURE_S
            return True
        self._sure_until = float("-inf")
        return False

    async def release(self) -> None:
        """Another server may begin at once."""
        self._sure_until = float("-inf")
        try:
            # As long as the row: it would outlive its owner, and be nobody's that could be named.
            await self._rows.change(LEASES, (NAME,), {"owner": _NOBODY}, {"owner": self._epoch}, LEASE_S)
        except StoreFailure:
            return  # it becomes void

    async def _holder(self, owner: object) -> str:
        row = await self._rows.row(EPOCHS, (owner,)) if isinstance(owner, int) else None
        return str(row["server"]) if row is not None else "unknown"
