"""What a server does beside: it renews its lease, and moves the browse starts.

*Rules*: while the lease is not sure nothing is handed out and no mail is taken. Where another server has it, what is in the
hand and not out is forgotten, and consumption ends; it begins again once the lease is free.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.hand.consuming import AreaConsumer
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.identity.lease import RENEW_S, ServerLease
from mailismus.queue.providers.distributed.stores.failure import StoreFailure


class Duties:
    """The duties of one server. `chance`: a number from 0 to 1; `pace`: of so many outcomes one moves the browse starts."""

    _log = Logger()

    def __init__(
        self,
        lease: ServerLease,
        consumers: tuple[AreaConsumer, ...],
        hand: Hand,
        starts: Starts,
        reactor: IReactorTime,
        chance: Callable[[], float],
        pace: Callable[[], int],
    ) -> None:
        self._lease, self._consumers, self._hand, self._starts = lease, consumers, hand, starts
        self._reactor, self._chance, self._pace = reactor, chance, pace
        self._is_closed = False
        self._is_lost = False

    def start(self) -> None:
        """Begin."""
        self._reactor.callLater(RENEW_S, self._renew)

    def close(self) -> None:
        """End."""
        self._is_closed = True

    def finished(self, outcomes: int) -> None:
        """So many outcomes were written."""
        if self._chance() * self._pace() < outcomes:
            Deferred.fromCoroutine(self._starts.move()).addErrback(self._not_moved)

    def _not_moved(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("the browse start can't be moved", failure)

    def _renew(self) -> None:
        if not self._is_closed:
            self._reactor.callLater(RENEW_S, self._renew)
            Deferred.fromCoroutine(self._keep()).addErrback(
                lambda failure: self._log.failure("the lease can't be renewed", failure)
            )

    async def _keep(self) -> None:
        is_mine = await self._lease.renew()
        if self._is_closed:
            return
        if not is_mine and not self._is_lost:
            self._is_lost = True
            self._log.critical("Another server serves this queue now: this one takes no mail and delivers nothing new.")
            self._hand.let_go_of_all()
            for consumer in self._consumers:
                await consumer.stop()
        elif is_mine and self._is_lost and self._lease.is_sure:
            self._is_lost = False
            self._log.warn("This server serves its queue again.")
            for consumer in self._consumers:
                await consumer.start()
