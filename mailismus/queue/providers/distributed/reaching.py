"""The stores of a queue for a command, which waits for each answer.

*Rule*: where a service can't be reached, or refuses, the command ends with 75: what it asks for lies there alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.services import ServicesSettings
from mailismus.disk.worker import ThreadPool
from mailismus.errors import StartError
from mailismus.queue.clock.elapsed import elapsed_seconds
from mailismus.queue.providers.distributed.clients import make_clients
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.turning import TurnedReactor

DRIVER_THREADS = 2

T = TypeVar("T")


class IReached(Protocol):
    """The stores, the clocks, and how a command waits."""

    @property
    def stores(self) -> Stores:
        """The clients. Nothing is connected before something is asked."""

    @property
    def timers(self) -> IReactorTime:
        """Calls that are made while the command waits."""

    def now(self) -> float:
        """UTC seconds."""

    def elapsed(self) -> float:
        """Seconds that never jump."""

    def wait(self, call: Coroutine[Deferred[Any], Any, T]) -> T:
        """Its result. Raises `StartError` (75) for a store that fails, and what else it raises."""

    def close(self) -> None:
        """End the connections."""


class ReachedServices:
    """`IReached` of services."""

    def __init__(self, settings: ServicesSettings) -> None:
        """Raises `StartError`."""
        self._turned = TurnedReactor()
        self._threads = ThreadPool(self._turned.reactor, "cassandra", DRIVER_THREADS)
        self.timers = cast(IReactorTime, self._turned.reactor)
        try:
            self.clients = make_clients(settings, self.timers, self._threads, time.time)
        except BaseException:
            self._turned.close()
            raise
        self.stores = self.clients.stores
        self._threads.start()

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return elapsed_seconds()

    def wait(self, call: Coroutine[Deferred[Any], Any, T]) -> T:
        try:
            return self._turned.wait(Deferred.fromCoroutine(call))
        except StoreFailure as failure:
            raise unreached(failure) from failure

    def close(self) -> None:
        self._turned.wait(Deferred.fromCoroutine(self.stores.close()).addErrback(lambda _: None))
        self._threads.leave()
        self._turned.close()


def unreached(failure: StoreFailure) -> StartError:
    """The end of a command that a store does not answer."""
    return StartError(os.EX_TEMPFAIL, f"the queue lies in its services, and can't be asked: {failure}")
