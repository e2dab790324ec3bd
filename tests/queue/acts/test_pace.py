"""An act leaves the server to mail: it rests behind each page by how long the page took, whichever thread worked."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock, deferLater

from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.acts.act import Act, ActKind, Order
from mailismus.queue.acts.run import ActRun, Keep
from mailismus.queue.interface import Filter, Page
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.memory import MemoryQueue
from mailismus.queue.throttle import ACT_SHARE, WorkClocks, WorkThrottle
from tests.queue.acts.world import RETRY

PAGES, PAGE_S = 4, 0.2


class SlowQueue(MemoryQueue):
    """A queue of several pages, each of which takes a while in some other thread; nothing matches."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.clock, self.claimed_at_s = clock, list[float]()

    def claim(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        self.claimed_at_s.append(self.clock.seconds())
        following = len(self.claimed_at_s) if len(self.claimed_at_s) < PAGES else None
        return deferLater(self.clock, PAGE_S, Page, (), following)


class Watched:
    """A run over that queue, in a process that is busy for a share of the time."""

    def __init__(self, busy: float, share: float = ACT_SHARE) -> None:
        self.clock = Clock()
        self.queue = SlowQueue(self.clock)
        manager = QueueManager(self.queue, RETRY, self.clock, self.clock.seconds, MemoryMailLog())
        throttle = WorkThrottle(WorkClocks(self.clock, lambda: busy * self.clock.seconds(), lambda: 0.0), share)
        act = Act(1, Order(ActKind.HOLD, 0, (), "because"), 0.0)
        keep = Keep(0.0, 0, lambda: 0)
        self.run = ActRun(act, manager.acting, keep, self.clock, throttle, lambda run: None, lambda number: False)

    def pauses(self) -> list[float]:
        """The seconds of the pauses between pages."""

        async def record(run: ActRun) -> None:
            await succeed(None)

        done: Deferred[Any] = Deferred.fromCoroutine(self.run.do(record))
        while not done.called:
            self.clock.advance(0.01)
        return [after - before - PAGE_S for before, after in pairwise(self.queue.claimed_at_s)]


def test_beside_a_busy_server_an_act_has_its_share_of_the_time() -> None:
    expected_s = PAGE_S * (1 / ACT_SHARE - 1)
    assert Watched(1.0).pauses() == pytest.approx([expected_s] * (PAGES - 1), rel=0.1)


def test_a_queue_may_leave_acts_a_smaller_share() -> None:
    assert Watched(1.0, 0.02).pauses() == pytest.approx([PAGE_S * 49] * (PAGES - 1), rel=0.1)


def test_beside_an_idle_server_it_hardly_pauses() -> None:
    assert max(Watched(0.0).pauses()[1:]) <= 0.2


def test_an_act_that_is_interrupted_does_not_rest_to_the_end() -> None:
    watched = Watched(1.0)
    done: Deferred[Any] = Deferred.fromCoroutine(watched.run.do(_nothing))
    watched.clock.advance(PAGE_S)
    watched.run.interrupt()
    watched.clock.pump([0.1] * 11)
    assert done.called
    assert watched.queue.claimed_at_s == [0.0]


async def _nothing(run: ActRun) -> None:
    await succeed(None)
