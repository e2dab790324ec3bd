"""What a server does each so many seconds, once at a time, as well as its stores let it.

*Rule*: that a store has failed is no news here, its circuit tells, nor that a stop waited for it no longer; any other
failure is logged, and the next turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.stores.failure import StoreFailure

Act = Callable[[], Coroutine[Deferred[Any], Any, None]]


class Regular:
    """An act that is done again and again. `broke`: what is logged where it failed otherwise than by a store."""

    _log = Logger()

    def __init__(self, each_s: float, reactor: IReactorTime, broke: str) -> None:
        self._each_s, self._reactor, self._broke = each_s, reactor, broke
        self._is_under_way = False
        self.is_closed = False
        """Read only. Whether it is begun no more."""

    def start(self, act: Act, in_s: float = 0.0) -> None:
        """Do it in so many seconds (0: at once), and go on."""
        if in_s:
            self._reactor.callLater(in_s, self.start, act)
        elif not self.is_closed:
            self._reactor.callLater(self._each_s, self.start, act)
            if not self._is_under_way:
                self._is_under_way = True
                self.do(act()).addCallback(self._ended)

    def close(self) -> None:
        """Begin it no more."""
        self.is_closed = True

    def do(self, call: Coroutine[Deferred[Any], Any, None]) -> Deferred[None]:
        """Do something else once, whatever becomes of it. Never fails."""
        return Deferred.fromCoroutine(call).addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure | CancelledError):
            self._log.failure(self._broke, failure)

    def _ended(self, _: None) -> None:
        self._is_under_way = False
