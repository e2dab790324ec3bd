"""Whose the shares in the hand are: what is asked before an entry is handed out, or moved on.

*Rules*
- A trigger of new mail that no server had before makes the share this server's for `TRUST_S`, unless it has said before that
  it has it not. What is here longer than `CLAIM_AFTER_S` is claimed; so is everything else before it is handed out, and
  whatever moves on.
- While the lease is not sure nothing is claimed, and no claim is relied on. What was claimed under a lease that was void as
  the answer came is not claimed: it would be relied on under the next one.
- What another server has claimed is left to a due row, so that its trigger can be acked: it comes again each `LEFT_FOR_S`,
  until it is over or free. All such rows of a share for one time are one row.
- A claim is given up when the share leaves the hand and lives on, or its trigger was lost before it was read: this server
  may hear of it no more as long as it has no broker. Until the database says so it counts.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.format.due import DueKind, due_row, due_share
from mailismus.queue.providers.distributed.format.share import ShareName
from mailismus.queue.providers.distributed.hand.enquiries import Enquiries
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import Basis, Delivered, HeldShare
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share
from mailismus.queue.providers.distributed.identity.claims import ClaimAnswer, Claims
from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure
from mailismus.queue.providers.distributed.stores.rows import IRows
from mailismus.queue.providers.distributed.stores.together import together

CLAIM_AFTER_S = 5.0
LEFT_FOR_S = 15.0
AT_A_TIME = 64
PAUSE_S = 5.0


class Owned(enum.Enum):
    """Whether a share is this server's."""

    STILL = "still"
    """It is, and no other server had it since its rows were read."""
    NOW = "now"
    """It is from now on: its rows are to be read again."""
    NOT = "not"


@attrs.frozen
class OwnClock:
    """Times, and whose. `now`: UTC seconds; `elapsed`: as `EnqueueClock`; `epoch`: of this server's lease; `pause`: fires so
    many seconds later."""

    now: Callable[[], float]
    elapsed: Callable[[], float]
    epoch: Callable[[], int]
    pause: Callable[[float], Deferred[None]]


class Owning:
    """The shares of one server."""

    _log = Logger()

    def __init__(
        self, rows: IRows, claims: Claims, hand: Hand, firing: Firing, enquiries: Enquiries, clock: OwnClock
    ) -> None:
        self._rows, self._claims, self._hand, self._firing, self._clock = rows, claims, hand, firing, clock
        self._enquiries = enquiries
        self._is_claiming = self._is_closed = False

    def close(self) -> None:
        """Give up no more claims."""
        self._is_closed = True

    async def own(self, held: HeldShare, new_since: float | None = None) -> Owned:
        """Make a share this server's. `new_since`: when a trigger of it came that no server had before. The caller has a use
        of it. Raises `NotDone`."""
        is_new = new_since is not None and held.basis is Basis.NOTHING and not held.here
        is_new = is_new and not self._enquiries.has_denied(held.name.enqueue_id)
        if new_since is not None and is_new and self._clock.elapsed() < new_since + CLAIM_AFTER_S:
            held.trust(new_since)
            return Owned.STILL
        return await self.claim(held)

    async def claim(self, held: HeldShare) -> Owned:
        """Claim a share that may be this server's by its trigger. Raises `NotDone`, also while the lease is not sure."""
        if held.basis is Basis.CLAIM and self._claims.are_sure:
            return Owned.STILL
        was_ours, epoch = held.basis is Basis.NEW, self._clock.epoch()
        found = await self._claims.claim(held.name.enqueue_id)
        if found is ClaimAnswer.OTHERS or not self.has_kept(epoch):
            if held.basis is not Basis.NOTHING:
                self._hand.lose(held)
            return Owned.NOT
        held.claimed()
        return Owned.STILL if was_ours and found is not ClaimAnswer.FREED else Owned.NOW

    def has_kept(self, epoch: int) -> bool:
        """Whether no other server may have taken over what this one wrote, or claimed, under this epoch."""
        return self._claims.are_unbroken(epoch)

    async def leave(self, held: HeldShare, deliveries: Iterable[Delivered]) -> None:
        """Leave a share to the server that has it: these triggers are acked, and it comes again. Raises `NotDone`,
        `Unanswered`."""
        now = self._clock.now()
        at = math.ceil((now + LEFT_FOR_S / 2) / LEFT_FOR_S) * LEFT_FOR_S
        due = due_share(held.name, at, now, self._clock.epoch(), DueKind.GIVEN_BACK)
        await self._rows.write([due_row(due, now)])
        self._firing.add([due])
        for delivered in deliveries:
            held.drop(delivered)
            delivered.ack()

    async def read_again(self, held: HeldShare) -> None:
        """Learn what is left of a share that others may have had. Raises `NotDone`, also where it is not known yet."""
        found = await read_share(self._rows, held.name)
        if found.condition is Condition.UNDER_WAY:
            raise NotDone("rows", "a batch is under way")
        if found.condition is not Condition.DAMAGED:
            held.learn(held.share, found.left, is_split=found.is_split)

    def stray(self, held: HeldShare) -> None:
        """Another server has a share, and there are triggers of it here."""
        held.begin_use()
        Deferred.fromCoroutine(self._stray(held)).addErrback(
            lambda failure: self._log.failure("a share can't be left to another server", failure)
        )

    async def _stray(self, held: HeldShare) -> None:
        while held.deliveries and held.basis is Basis.NOTHING and not self._is_closed:
            try:
                await self.leave(held, list(held.deliveries))
            except StoreFailure:
                await self._clock.pause(PAUSE_S)
        if not self._is_closed:
            self._hand.end_use(held)

    # claims in time

    def look(self) -> None:
        """Claim what is here for long. Called each second."""
        since = self._clock.elapsed() - CLAIM_AFTER_S
        old = [held for held in self._hand.shares.values() if held.basis is Basis.NEW and held.new_since <= since]
        if old and not self._is_claiming:
            self._is_claiming = True
            Deferred.fromCoroutine(self._claim_all(old)).addErrback(
                lambda failure: self._log.failure("shares can't be claimed", failure)
            ).addBoth(self._claimed)

    def _claimed(self, _: object) -> None:
        self._is_claiming = False

    async def _claim_all(self, old: list[HeldShare]) -> None:
        for at in range(0, len(old), AT_A_TIME):
            await together(self._claim_late(held) for held in old[at : at + AT_A_TIME])

    async def _claim_late(self, held: HeldShare) -> None:
        if self._hand.shares.get(held.name.enqueue_id) is not held or not held.here:
            return
        held.begin_use()
        try:
            if await self.claim(held) is Owned.NOW:
                await self.read_again(held)
                self._hand.drop_over(held)
        except StoreFailure:
            pass  # it is asked for again, and not begun meanwhile once it is not trusted any more
        finally:
            self._hand.end_use(held)

    # claims that end

    def let_go(self, held: HeldShare) -> None:
        """A share may be claimed, and was not read. Let others claim it, unless it is here."""
        if held.basis is Basis.CLAIM and held.name.enqueue_id not in self._hand.shares:
            self.give_up(held.name)

    def give_up(self, name: ShareName) -> None:
        """A claimed share has left the hand, and lives on."""
        Deferred.fromCoroutine(self._give_up(name)).addErrback(
            lambda failure: self._log.failure("a claim can't be given up", failure)
        )

    async def _give_up(self, name: ShareName) -> None:
        while not (self._is_closed or name.enqueue_id in self._hand.shares):
            try:
                await self._claims.give_up(name.enqueue_id, lambda: name.enqueue_id not in self._hand.shares)
            except StoreFailure:
                await self._clock.pause(PAUSE_S)
                continue
            return
