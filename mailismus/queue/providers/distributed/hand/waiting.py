"""Triggers that wait: for their turn, or because another server may have their share without a claim.

*Rules*: new mail that another server was told of, or may have been, waits for `WAIT_S`, longer than that one trusts its
trigger (`TRUST_S`); not where none of those has a lease any more that had one when the trigger came here, or all of them
that have say that they have it not. A server that started since was told of nothing before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from uuid import UUID

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.hand.enquiries import Enquiries
from mailismus.queue.providers.distributed.hand.held import Delivered, HeldShare
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.stores.failure import StoreFailure

WAIT_S = 30.0
LOOK_S, LEAST_S = 2.0, 0.1
"""Until the leases are looked at again, at most and at least."""
ASKS = 6
"""How often others are asked whether they have it: behind a loss of the broker one may hear nothing for a while."""


@attrs.define(eq=False)
class WaitingTrigger:
    """A trigger whose share is to be read. `since`: when it came, in elapsed seconds. `is_new`: no server was told of it
    before. `waits`: another server may have it without a claim."""

    held: HeldShare
    numbers: Sequence[int] | None
    body: bytes
    delivered: Delivered
    since: float
    is_new: bool
    waits: bool
    may_have_it: frozenset[int] | None = None
    """The epochs of other servers that may have it without a claim; None: nobody has looked yet."""
    asks: int = 0
    """How often they were asked."""

    def learn(self, live: frozenset[int]) -> None:
        """These epochs have leases."""
        self.may_have_it = live if self.may_have_it is None else self.may_have_it & live

    def deny(self, epoch: int) -> None:
        """The server of this epoch has it not."""
        if self.may_have_it is not None:
            self.may_have_it -= {epoch}

    def ask(self) -> bool:
        """Whether others are to be asked once more."""
        self.asks += 1
        return self.asks <= ASKS

    def is_free(self, elapsed: float) -> bool:
        """Whether no server has it without a claim any more."""
        return elapsed >= self.since + WAIT_S or self.may_have_it == frozenset() or self.delivered.is_lost


class Suspects:
    """Those that wait because another server may have them."""

    _log = Logger()

    def __init__(
        self, lease: ServerLease, enquiries: Enquiries, reactor: IReactorTime, elapsed: Callable[[], float]
    ) -> None:
        self._lease, self._enquiries, self._reactor, self._elapsed = lease, enquiries, reactor, elapsed
        self._waiting: dict[WaitingTrigger, Deferred[WaitingTrigger]] = {}
        self._timer: IDelayedCall | None = None
        self._is_looking = self._is_closed = False

    def start(self) -> None:
        """Hear what other servers say."""
        self._enquiries.start(self._denied)

    def close(self) -> None:
        """Look no more."""
        self._is_closed = True

    def wait(self, waiting: WaitingTrigger) -> Deferred[WaitingTrigger]:
        """Fires when it need not wait any more; never, when this is closed before."""
        free = self._waiting[waiting] = Deferred[WaitingTrigger]()
        self._look_in(0.0)
        return free

    def _look_in(self, seconds: float) -> None:
        if self._is_looking:
            return  # it is looked again behind that
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = self._reactor.callLater(seconds, self._look)

    def _look(self) -> None:
        if not self._is_closed:
            self._is_looking = True
            Deferred.fromCoroutine(self._let_go()).addErrback(self._failed).addCallback(self._looked)

    def _failed(self, failure: Failure) -> bool:
        self._log.failure("triggers that wait can't be looked at", failure)
        return False

    def _looked(self, is_known: bool) -> None:
        self._is_looking = False
        if self._waiting:
            has_come = is_known and any(one.may_have_it is None for one in self._waiting)
            self._look_in(0.0 if has_come else self._pause_s())

    def _pause_s(self) -> float:
        first = min(one.since for one in self._waiting)
        return min(LOOK_S, max(LEAST_S, first + WAIT_S - self._elapsed()))

    async def _let_go(self) -> bool:
        """Let those go that are free, and ask others about the rest. Return whether the leases are known."""
        some = list(self._waiting)  # of what comes meanwhile another may know that has no lease yet
        try:
            live = await self._lease.others()
        except StoreFailure:
            live = None
        for one in some:
            if live is not None:
                one.learn(live)
        self._free(some)
        self._enquiries.ask([one.held.name.enqueue_id for one in some if one in self._waiting and live and one.ask()])
        return live is not None

    def _denied(self, epoch: int, names: Collection[UUID]) -> None:
        """Another server has these shares not."""
        if self._is_closed:
            return
        known = set(names)
        some = [one for one in self._waiting if one.held.name.enqueue_id in known]
        for one in some:
            one.deny(epoch)
        self._free(some)

    def _free(self, some: Sequence[WaitingTrigger]) -> None:
        """Let those go that are free."""
        now = self._elapsed()
        for one in some:
            if one in self._waiting and one.is_free(now):
                self._waiting.pop(one).callback(one)
