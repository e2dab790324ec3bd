"""The spool ids of one server: an epoch that was claimed, and another one with each new slice."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.identity.epochs import COUNTER_BITS, Epoch, Epochs
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.view.change import ViewSettings

EACH_S = 60.0
"""An epoch lasts so long at least."""
KEPT = 1000
"""Epochs of this server of which it is kept where they begin: those of longer than a message takes to come in."""


class ServerSpoolIds:
    """Gives ids out at once. `now`: UTC seconds."""

    _log = Logger()

    def __init__(self, epochs: Epochs, view: Callable[[], ViewSettings], now: Callable[[], float]) -> None:
        self._epochs, self._view, self._now = epochs, view, now
        self._epoch: Epoch | None = None
        self._claimed_at = 0.0
        self._slices: dict[int, float] = {}
        self._is_claiming = False

    async def start(self) -> int:
        """Claim the first epoch, and return it. Raises `NotDone`."""
        return (await self._claim()).number

    def next(self) -> SpoolId:
        """An id. Raises `Unavailable`."""
        if self._now() >= self._claimed_at + EACH_S and self._slice() != self._current.slice_start:
            self._begin_claim()
        spool_id = self._current.next_id()
        if spool_id is None:
            self._begin_claim()
            raise Unavailable("the ids of this server are used up, and new ones are not there yet")
        return spool_id

    def slice_of(self, spool_id: SpoolId) -> float:
        """Where its epoch's messages begin."""
        return self._slices[spool_id >> COUNTER_BITS]

    def own_slice(self, spool_id: SpoolId) -> float | None:
        """The same; None: the epoch is not this server's."""
        return self._slices.get(spool_id >> COUNTER_BITS)

    @property
    def _current(self) -> Epoch:
        if self._epoch is None:
            raise Unavailable("the queue is not open yet")
        return self._epoch

    def _slice(self) -> float:
        return slice_start(self._now(), self._view().slice_window_s)

    def _begin_claim(self) -> None:
        if not self._is_claiming:
            self._is_claiming = True
            Deferred.fromCoroutine(self._claim()).addErrback(self._failed).addBoth(self._claimed)

    async def _claim(self) -> Epoch:
        epoch = self._epoch = await self._epochs.claim(self._slice())
        self._slices[epoch.number] = epoch.slice_start
        if len(self._slices) > KEPT:
            del self._slices[next(iter(self._slices))]
        self._claimed_at = self._now()
        return epoch

    def _failed(self, failure: Failure) -> None:
        if isinstance(failure.value, StoreFailure):
            self._log.warn("no new epoch: {failure}", failure=failure.value)
        else:
            self._log.failure("no new epoch", failure)

    def _claimed(self, _: object) -> None:
        self._is_claiming = False
