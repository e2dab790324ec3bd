"""A server of the shared queue, for the contract suite; and over models of its stores, for its own tests too."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.queue.interface import Area, ICountingPlan, IQueue, Message, Shares, Summary
from mailismus.queue.providers.distributed.assembly import ServerTerms, build
from mailismus.queue.providers.distributed.due.firing import REPLAYED_S
from mailismus.queue.providers.distributed.provider import DistributedQueue
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.view.change import ViewSettings
from tests.distributed.world import Server, World

T = TypeVar("T")
VIEW = ViewSettings(3600, 2, 20)
STEP_S, STEPPED_S = 5.0, 600.0
FARTHEST_S = 40_000.0
"""Nothing that the contract's tests wait for is farther ahead, but what is never due."""


class _Ahead:
    """`IQueue` whose time goes on where a test takes at a time ahead: the provider's own clock tells it what is due."""

    def __init__(self, harness: ServerHarness, queue: DistributedQueue) -> None:
        self._harness, self._queue = harness, queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        ahead = min(now - self._harness.now(), FARTHEST_S)
        if ahead > 0:
            self._harness.advance(ahead)
            self._harness.advance(0)
        return self._queue.take(area, limit, now, shares)


class ServerHarness(ABC):
    """`DurableHarness`: one server, which stops and starts over the same stores."""

    takes_at_once = False  # what waits for a call that is repeated comes with a later take

    def __init__(self, clock: Clock, seed: int, view: ViewSettings = VIEW) -> None:
        self.clock, self.view = clock, view
        self._random = random.Random(seed)

    @abstractmethod
    def stores(self) -> Stores:
        """The stores of a server that starts."""

    def open(self, name: str = "mx") -> DistributedQueue:
        """A server's start."""
        queue = build(self.stores(), self.clock, self.terms(name))
        self.wait(queue.open())
        return queue

    def terms(self, name: str) -> ServerTerms:
        """The terms of a server of this name."""
        return ServerTerms(
            *(name, self.view, 86_400.0, 1000, self.now, self.now, self._random.getrandbits, self._random.random)
        )

    def make(self) -> IQueue:
        return cast(IQueue, _Ahead(self, self.open()))

    @abstractmethod
    def wait(self, deferred: Deferred[T]) -> T:
        """As `QueueHarness.wait`."""

    def now(self) -> float:
        return float(self.clock.seconds())

    def advance(self, seconds: float) -> None:
        """So much time passes. It stands at whole milliseconds, as times are kept. Minutes pass in steps, so that a lease is
        renewed in time; more is as if the server had stood still."""
        end = self.now() + seconds
        while STEP_S < end - self.now() <= STEPPED_S:
            self._advance(STEP_S)
        self._advance(end - self.now())

    def _advance(self, seconds: float) -> None:
        until = round(self.now() + seconds, 3)
        self.clock.advance(max(0.0, until - self.now()))
        self.clock.rightNow = until
        self.settle()

    @abstractmethod
    def settle(self) -> None:
        """Let all happen that needs no time."""

    def count(self, plan: ICountingPlan) -> Summary:
        raise AssertionError("this provider has no plan")

    def restart(self, queue: IQueue) -> IQueue:
        self.wait(queue.close())
        return self.make()

    def crash(self, queue: IQueue) -> IQueue:
        """The server stops where it is, and starts again; its bounces come a moment later."""
        self.crash_only()
        queue = self.make()
        self.advance(REPLAYED_S)
        return queue

    @abstractmethod
    def crash_only(self) -> None:
        """Nothing more is done by the server; the stores see its connections end."""

    @abstractmethod
    def close(self) -> None:
        """End everything."""


class ModelHarness(ServerHarness):
    """Also `FailingHarness`. A server over models of its stores."""

    def __init__(self, view: ViewSettings = VIEW) -> None:
        self.world = World()
        self.server: Server | None = None
        self.are_away = False
        super().__init__(self.world.clock, 1, view)

    def stores(self) -> Stores:
        self.server = self.world.server()
        return self.server.stores

    def wait(self, deferred: Deferred[T]) -> T:
        results: list[Any] = []
        deferred.addBoth(results.append)
        self.advance(0)  # most of it needs no time
        for _ in range(3000):
            if results:
                break
            self.advance(0.1)
        self.advance(0)  # what goes on without time passing
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return cast(T, results[0])

    def settle(self) -> None:
        self.clock.advance(0)

    def crash_only(self) -> None:
        assert self.server is not None
        self.clock.calls.clear()
        self.server.broker.close()

    def break_down(self, queue: IQueue) -> None:
        self._are_away(True)

    def mend(self, queue: IQueue) -> None:
        self._are_away(False)

    def _are_away(self, are_away: bool) -> None:
        assert self.server is not None
        self.are_away = are_away
        for fates in self.server.fates:
            fates.is_away = are_away

    def close(self) -> None:
        self.clock.calls.clear()
