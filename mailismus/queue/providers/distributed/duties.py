"""What a server does beside: it renews its lease, claims what it has for long, and moves the browse starts.

    lease sure -> not sure: nothing is begun -> renewed in time: all as before
                                             -> void: the hand is forgotten, triggers go back; another epoch
    clock far behind: the lease is ended, as if it were void -> another epoch once the clock is right
    void, and a conversion is at the queue by now -> no lease, until that is over

*Rules*: while the lease is not sure nothing is handed out and no mail is taken. After a lease that was void others may have
taken over everything: what is out is settled and not begun any more. A server that can't reach the database knows by its own
clock that its lease is void, and keeps no triggers from others.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.hand.consuming import AreaConsumer
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.owning import Owning
from mailismus.queue.providers.distributed.identity.lease import RENEW_S, ServerLease
from mailismus.queue.providers.distributed.identity.spool_ids import ServerSpoolIds
from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure
from mailismus.queue.providers.distributed.stores.together import together
from mailismus.queue.providers.distributed.view.current import CurrentView

LOOK_S = 1.0
AGAIN_S = 1.0
"""Until a lease is renewed again that could not be renewed: a call without an answer took seconds."""


class Duties:
    """The duties of one server. `chance`: a number from 0 to 1; `pace`: of so many outcomes one moves the browse starts."""

    _log = Logger()

    def __init__(
        self,
        lease: ServerLease,
        ids: ServerSpoolIds,
        consumers: tuple[AreaConsumer, ...],
        hand: Hand,
        owning: Owning,
        firing: Firing,
        starts: Starts,
        view: CurrentView,
        reactor: IReactorTime,
        chance: Callable[[], float],
        pace: Callable[[], int],
        is_behind: Callable[[], bool],
        resumed: Callable[[], None],
    ) -> None:
        """`is_behind`: whether this server's clock is so far behind that it must not serve; `resumed`: told when the lease
        is sure again."""
        self._is_behind, self._resumed = is_behind, resumed
        self._lease, self._ids, self._consumers = lease, ids, consumers
        self._hand, self._owning, self._firing, self._starts, self._view = hand, owning, firing, starts, view
        self._reactor, self._chance, self._pace = reactor, chance, pace
        self._is_closed = self._is_lost = False
        self._lock = DeferredLock()
        """Held while the lease is renewed or acquired."""

    def start(self) -> None:
        """Begin."""
        self._renew_in(self._lease.renewed_in_s)
        self._reactor.callLater(LOOK_S, self._look)

    def close(self) -> Deferred[None]:
        """End. Fires when no lease is being renewed or acquired any more."""
        self._is_closed = True
        return self._lock.run(lambda: None)

    def finished(self, outcomes: int) -> None:
        """So many outcomes were written."""
        if self._chance() * self._pace() < outcomes:
            Deferred.fromCoroutine(self.move_starts()).addErrback(self._not_moved)

    async def move_starts(self) -> None:
        """Move the browse starts, by what other servers have moved, and by the settings that they use. Raises `NotDone`,
        `Unanswered`."""
        await self._view.look()  # another server may write into more buckets by now
        await self._starts.load()
        await self._starts.move()

    def _not_moved(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("the browse start can't be moved", failure)

    def _look(self) -> None:
        if not self._is_closed:
            self._reactor.callLater(LOOK_S, self._look)
            self._owning.look()

    def _renew(self) -> None:
        if not self._is_closed:
            begun = self._reactor.seconds()
            self._lock.run(Deferred.fromCoroutine, self._keep()).addCallbacks(
                lambda _: self._renew_in(RENEW_S - (self._reactor.seconds() - begun)), self._not_kept
            )

    def _renew_in(self, seconds: float) -> None:
        self._reactor.callLater(min(RENEW_S, max(0.0, seconds)), self._renew)  # the clock may jump

    def _not_kept(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("the lease can't be renewed", failure)
        self._renew_in(AGAIN_S)

    async def _keep(self) -> None:
        was_sure = self._lease.is_sure
        if not self._is_lost and self._is_behind():
            await self._lease.release()  # first: what is being claimed is not ours any more
            await self._leave("The clock of this server is far behind: it leaves its work to other servers.")
        if not self._is_lost and not await self._is_renewed():
            await self._leave("The lease of this server was void: other servers may deliver what it had.")
        if self._is_lost and not self._is_closed:
            if self._is_behind():
                raise NotDone("rows", "the clock of this server is far behind")
            try:
                await self._lease.serve(self._ids.start)
            except StartError as error:
                self._log.critical("This server serves its queue no more: {error}", error=error)
                return
            if self._is_closed:
                return  # who closes it gives the lease up
            self._is_lost = False
            self._log.warn("This server serves its queue again.")
            await together(consumer.start() for consumer in self._consumers)
        if not was_sure and self._lease.is_sure:
            self._resumed()
        self._firing.adopt(await self._lease.look())

    async def _leave(self, why: str) -> None:
        """Others may have everything."""
        self._is_lost = True
        self._log.critical(why)
        self._hand.lose_all()
        await together(consumer.stop() for consumer in self._consumers)

    async def _is_renewed(self) -> bool:
        """Whether the lease was renewed; False: it is void, be it by this server's own clock. Raises `NotDone`,
        `Unanswered`: neither is known."""
        try:
            return await self._lease.renew()
        except StoreFailure:
            if self._lease.left_s is None:
                return False
            raise
