"""The wall clock jumps by a year: nothing stalls, and nothing is given up without another attempt."""

from __future__ import annotations

import pytest

from mailismus.queue.interface import Area
from tests.faults.world import World

YEAR_S = 365 * 86400.0
EVERY_DELAY_S = 3 * 1800.0
"""Within the longest pause between two attempts everything is due."""


def jump(world: World, seconds: float) -> None:
    """The time of day does; timers do not, and neither does the monotonic clock."""
    clock = world.harness.clock
    clock.rightNow += seconds
    for call in clock.calls:
        call.time += seconds
    world.jumped_s += seconds


def filled() -> World:
    """Young and resting entries in every area."""
    world = World()
    world.start()
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


def tried(world: World) -> set[object]:
    """What is tried while a while goes by: everything that is not over, if nothing stalls."""
    found: set[object] = set()
    for _ in range(int(EVERY_DELAY_S // 300)):
        world.later(300)
        for area in (Area.INCOMING, Area.DEFERRED):
            for message in world.take(area, 1000):
                found |= set(message.queue_ids())
                assert world.manager is not None
                world.manager.give_back(message, message.entries, 60.0)
        world.settle_down(0.1)
    return found


def waiting(world: World) -> set[object]:
    return {queue_id for queue_id, entry in world.live().items() if entry.area is not Area.BOUNCES}


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
    jump(world, seconds)
    before = waiting(world)
    assert before
    bounces = {queue_id for queue_id, entry in world.live().items() if entry.area is Area.BOUNCES}
    world.later(1)
    world.settle_down()
    assert {queue_id for queue_id, entry in world.live().items() if entry.area is Area.BOUNCES} == bounces
    attempts = {queue_id: entry.attempts for queue_id, entry in world.live().items()}
    for _ in range(20):
        world.defer(Area.INCOMING, 1000)
        world.defer(Area.DEFERRED, 1000)
    for queue_id, entry in world.live().items():
        if entry.area is Area.BOUNCES and queue_id not in bounces:
            assert entry.attempts > attempts[queue_id]
            assert seconds > 0
    if seconds < 0:
        assert waiting(world) == before


@pytest.mark.parametrize("seconds", [-YEAR_S, YEAR_S], ids=["back", "ahead"])
def test_what_stays_is_written_behind_and_mail_is_accepted(seconds: float) -> None:
    world = filled()
    made = world.running().checkpoints.checkpoints
    jump(world, seconds)
    world.later(20)
    assert world.running().checkpoints.checkpoints > made
    made = world.running().checkpoints.checkpoints
    assert world.store(2)
    world.later(20)
    assert world.running().checkpoints.checkpoints > made
    assert not world.running().pressure.is_shedding


def test_a_checkpoint_that_came_to_nothing_before_a_jump_is_made_again() -> None:
    world = filled()
    world.disk.is_ill = lambda act, path: act == "sync" and path.endswith(".mqc")
    world.checkpoint()
    world.disk.is_ill = None
    made = world.running().checkpoints.checkpoints
    jump(world, -YEAR_S)
    world.later(20)
    world.settle_down(2)
    assert world.running().checkpoints.checkpoints > made


def test_what_came_by_a_clock_a_year_ahead_expires_in_its_time() -> None:
    world = World()
    world.start()
    world.store(1)
    world.defer()
    jump(world, -YEAR_S)
    for _ in range(200):
        world.later(3600)
        world.defer(Area.DEFERRED, 10)
        if [entry for entry in world.live().values() if entry.area is Area.BOUNCES]:
            return
    raise AssertionError("it never expires")
