"""Tasks that one server does at a time, by compare and set: who wants one done writes it down, who does it says so.

    wanted -> begun by an epoch -> done
                    |  its lease is void: begun by another one

*Rules*: a task that is wanted while it is being done is done once more. What is wanted stays so until it is done, whatever
becomes of servers.
"""

from __future__ import annotations

from mailismus.queue.providers.distributed.format.tables import TASKS
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.rows import IRows

REFILL = "refill "
"""How the names begin of tasks that fill a queue of the broker again; the area follows."""
WANTED, DONE = 0, -1
TRIES = 10


async def want(rows: IRows, name: str) -> None:
    """Have a task done. Raises `NotDone`."""
    for _ in range(TRIES):
        try:
            found = await rows.add(TASKS, (name,), {"owner": WANTED})
            if found is None or found["owner"] == WANTED:
                return
            owner = {"owner": found["owner"]}
            if await rows.change(TASKS, (name,), {"owner": WANTED}, owner) is None:
                return
        except Unanswered:
            continue
    raise NotDone("rows", f"task {name} could not be asked for")


class ServerTasks:
    """The tasks as one server sees them."""

    def __init__(self, rows: IRows, lease: ServerLease) -> None:
        self._rows, self._lease = rows, lease

    async def open(self) -> list[str]:
        """Those that are wanted, and that no other server is at. Raises `NotDone`."""
        names = []
        for row in await self._rows.all_rows(TASKS):
            name, owner = row["name"], row["owner"]
            if not (isinstance(name, str) and name.startswith(REFILL) and isinstance(owner, int)):
                continue  # other work, with rules of its own
            if await self._is_free(owner):
                names.append(name)
        return names

    async def _is_free(self, owner: int) -> bool:
        if owner in (WANTED, DONE):
            return owner == WANTED
        return owner == self._lease.epoch or not await self._lease.is_live(owner)

    async def begin(self, name: str) -> bool:
        """Begin one. False: another server is at it, or it is done. Raises `NotDone`, `Unanswered`."""
        row = await self._rows.row(TASKS, (name,))
        owner = DONE if row is None else row["owner"]
        if not isinstance(owner, int) or not await self._is_free(owner):
            return False
        return await self._rows.change(TASKS, (name,), {"owner": self._lease.epoch}, {"owner": owner}) is None

    async def end(self, name: str) -> bool:
        """It is done. False: it is wanted once more. Raises `NotDone`, `Unanswered`."""
        mine = {"owner": self._lease.epoch}
        return await self._rows.change(TASKS, (name,), {"owner": DONE}, mine) is None
