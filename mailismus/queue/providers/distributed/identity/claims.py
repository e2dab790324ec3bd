"""Claims: which server has a share that another one might try as well. By compare and set, one row a share.

*Rules*: a claim counts while the epoch that it names has a lease. An epoch that claimed a share has it until it gives it up,
whatever becomes of its trigger. One claim of a share is asked for at a time, or given up: so the answer is true.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from uuid import UUID

import attrs
from twisted.internet.defer import DeferredLock

from mailismus.queue.providers.distributed.format.tables import CLAIMS
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.rows import IRows

TTL_S = 7 * 86_400
"""No share is in a hand for so long."""
TRIES = 10
_NOBODY = 0


@attrs.define
class _Turn:
    lock: DeferredLock = attrs.field(factory=DeferredLock)
    uses: int = 0

    def begin(self) -> None:
        """Somebody wants it."""
        self.uses += 1

    def end(self) -> None:
        """Somebody had it."""
        self.uses -= 1


class ClaimAnswer(enum.Enum):
    """What was found where a claim was asked for."""

    NONE = "none"
    """Nobody had claimed it, and it is claimed now."""
    OURS = "ours"
    FREED = "freed"
    """Another server, or this one, had it before; it is claimed now."""
    OTHERS = "others"


class Claims:
    """The claims of one server."""

    def __init__(self, rows: IRows, lease: ServerLease) -> None:
        self._rows, self._lease = rows, lease
        self._turns: dict[UUID, _Turn] = {}

    @property
    def are_sure(self) -> bool:
        """Whether claims of this server count now, for sure."""
        return self._lease.is_sure

    def are_unbroken(self, epoch: int) -> bool:
        """Whether this epoch is this server's, and its lease was never void: nobody has taken over what it wrote."""
        return epoch == self._lease.epoch and self._lease.left_s is not None

    async def claim(self, share: UUID) -> ClaimAnswer:
        """Claim a share. Raises `NotDone`, also where it is not known whose it is, and while the lease is not sure."""
        if not self.are_sure:
            raise NotDone("rows", "the lease of this server is not sure")
        turn = await self._begin(share)
        try:
            return await self._claim(share)
        finally:
            self._end(share, turn)

    async def give_up(self, share: UUID, is_unused: Callable[[], bool]) -> None:
        """Let others claim a share, if it is still unused here. Raises `NotDone`, `Unanswered`: then it may be ours yet."""
        turn = await self._begin(share)
        try:
            if is_unused():
                await self._rows.change(CLAIMS, (share,), {"owner": _NOBODY}, {"owner": self._lease.epoch}, TTL_S)
        finally:
            self._end(share, turn)

    async def _claim(self, share: UUID) -> ClaimAnswer:
        mine, is_sure = self._lease.epoch, True
        for _ in range(TRIES):
            try:
                found = await self._rows.add(CLAIMS, (share,), {"owner": mine}, TTL_S)
                if found is None:
                    return ClaimAnswer.NONE
                if found["owner"] == mine:
                    return ClaimAnswer.OURS if is_sure else ClaimAnswer.FREED
                owner = found["owner"]
                if isinstance(owner, int) and owner != _NOBODY and await self._lease.is_live(owner):
                    return ClaimAnswer.OTHERS
                if await self._rows.change(CLAIMS, (share,), {"owner": mine}, {"owner": owner}, TTL_S) is None:
                    return ClaimAnswer.FREED
            except Unanswered:
                is_sure = False
        raise NotDone("rows", f"no claim after {TRIES} tries")

    async def _begin(self, share: UUID) -> _Turn:
        turn = self._turns.setdefault(share, _Turn())
        turn.begin()
        await turn.lock.acquire()
        return turn

    def _end(self, share: UUID, turn: _Turn) -> None:
        turn.end()
        if not turn.uses:
            del self._turns[share]
        turn.lock.release()
