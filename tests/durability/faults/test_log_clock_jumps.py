"""The wall clock jumps under the log-structured queue: nothing stalls, and nothing is given up without another attempt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mailismus.queue.interface import Area
from tests.durability.faults.test_clock_jumps import YEAR_S, jump, looked_at, tried, waiting
from tests.durability.faults.world import World
from tests.durability.subjects.log import LOG, LogRunning


def begun() -> World:
    world = World(LOG)
    world.start()
    return world


def filled() -> World:
    """Entries in memory and in the log alone, in every area."""
    world = begun()
    for _ in range(2):
        world.store(3)
        world.store(2, 150_000)
        world.defer(limit=2)
        world.fail()
        world.store(1)
        world.checkpoint()
    world.store(3)
    world.defer()
    return world


def rounds(world: World) -> int:
    """How many there were."""
    running = world.harness.running
    assert isinstance(running, LogRunning)
    return running.queue.rounds.rounds


@pytest.mark.parametrize("seconds", [-YEAR_S, YEAR_S, -90.0, 3 * YEAR_S], ids=["back", "ahead", "little", "far"])
def test_everything_is_tried_again_within_the_longest_pause(seconds: float) -> None:
    world = filled()
    jump(world, seconds)
    assert tried(world) >= waiting(world)


@pytest.mark.parametrize("seconds", [-YEAR_S, YEAR_S], ids=["back", "ahead"])
def test_a_clock_that_was_set_right_while_the_server_was_down_stalls_nothing(seconds: float) -> None:
    world = filled()
    world.kill()
    jump(world, seconds)
    world.start()
    assert tried(world) >= waiting(world)


@pytest.mark.parametrize("seconds", [-YEAR_S, YEAR_S], ids=["back", "ahead"])
def test_nothing_expires_before_another_attempt(seconds: float) -> None:
    world = filled()
    bounces = {queue_id for queue_id, entry in world.live().items() if entry.area is Area.BOUNCES}
    jump(world, seconds)
    world.later(1)
    world.settle_down()
    assert {queue_id for queue_id, entry in world.live().items() if entry.area is Area.BOUNCES} == bounces


@pytest.mark.parametrize("seconds", [-YEAR_S, YEAR_S], ids=["back", "ahead"])
def test_rounds_go_on_and_mail_is_accepted(seconds: float) -> None:
    world = filled()
    jump(world, seconds)
    for _ in range(2):
        count = rounds(world)
        assert world.store(2)
        world.later(20)
        assert rounds(world) > count


def start_again(world: World) -> None:
    world.checkpoint()
    world.kill()
    world.start()
    looked_at(world)


WHERE: dict[str, Callable[[World], object]] = {
    "in the log": lambda world: None,
    "behind a round": lambda world: world.checkpoint(),
    "after a start": start_again,
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("seconds", [-90.0, -3600.0, -400 * 86400.0])
def test_a_delay_goes_on_when_the_clock_is_set_back(seconds: float, where: str) -> None:
    world = begun()
    world.store(2)
    world.defer(limit=2)
    deferred_at = world.harness.now() - world.jumped_s
    WHERE[where](world)
    for _ in range(2):
        jump(world, seconds)
        looked_at(world)
        world.later(100)
    waited_s = 0.0
    while not (found := world.take(Area.DEFERRED, 10)):
        world.harness.clock.advance(10.0)
        waited_s = world.harness.now() - world.jumped_s - deferred_at
        assert waited_s < 1100.0, "it waits too long"
    assert waited_s >= 890.0
    assert sum(len(message.entries) for message in found) == 2
