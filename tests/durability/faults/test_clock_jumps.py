"""The wall clock jumps by a year: nothing stalls, and nothing is given up without another attempt."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint
from tests.durability.faults.clustered import queue_of
from tests.durability.faults.world import DEFERRED, World
from tests.fakes.managing import settle

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
    made = queue_of(world).checkpoints.counts.made
    jump(world, seconds)
    world.later(20)
    assert queue_of(world).checkpoints.counts.made > made
    made = queue_of(world).checkpoints.counts.made
    assert world.store(2)
    world.later(20)
    assert queue_of(world).checkpoints.counts.made > made
    assert not queue_of(world).parts.pressure.is_shedding


def test_a_checkpoint_that_came_to_nothing_before_a_jump_is_made_again() -> None:
    world = filled()
    world.disk.is_ill = lambda act, path: act == "sync" and path.endswith(".mqc")
    world.checkpoint()
    world.disk.is_ill = None
    made = queue_of(world).checkpoints.counts.made
    jump(world, -YEAR_S)
    world.later(20)
    world.settle_down(2)
    assert queue_of(world).checkpoints.counts.made > made


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


def looked_at(world: World) -> None:
    """Somebody asks for the time, as the tasks do all the time."""
    world.take(Area.BOUNCES, 1)
    world.settle_down(0.1)


def rest(world: World) -> None:
    world.checkpoint()


def move_until(world: World, is_far: Callable[[PendingCheckpoint], bool]) -> None:
    """A checkpoint begins, and gets so far."""
    checkpoints = queue_of(world).checkpoints
    checkpoints.run()
    for _ in range(10_000):
        if checkpoints.pending is not None and is_far(checkpoints.pending):
            return
        world.harness.clock.advance(0.0001)
    raise AssertionError("it never gets so far")


def start_again(world: World) -> None:
    world.checkpoint()
    world.kill()
    world.start()
    looked_at(world)


WHERE: dict[str, Callable[[World], object]] = {
    "young": lambda world: None,
    "resting": rest,
    "after a start": start_again,
    "in a checkpoint that begins": lambda world: move_until(world, lambda moving: True),
    "in a checkpoint that has written": lambda world: move_until(world, lambda moving: bool(moving.lines)),
    "in a checkpoint that is sealed": lambda world: move_until(world, lambda moving: moving.is_sealed),
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("seconds", [-90.0, -3600.0, -400 * 86400.0])
def test_a_delay_goes_on_when_the_clock_is_set_back(seconds: float, where: str) -> None:
    """Twice: an entry rests, another one joins it in its cluster, and the clock is set back again."""
    world = World()
    world.start()
    world.store(2)
    world.defer(limit=2)
    deferred_at = world.harness.now() - world.jumped_s
    WHERE[where](world)
    jump(world, seconds)
    looked_at(world)
    world.later(200)
    world.checkpoint()
    jump(world, seconds)
    looked_at(world)
    waited_s = 0.0
    while not (found := world.take(Area.DEFERRED, 10)):
        world.harness.clock.advance(10.0)
        waited_s = world.harness.now() - world.jumped_s - deferred_at
        assert waited_s < 1100.0, "it waits too long"
    assert waited_s >= 890.0
    assert [len(message.entries) for message in found] == [2]


@pytest.mark.parametrize("is_moved", [False, True], ids=["young", "moved"])
def test_what_is_out_when_the_clock_is_set_back_comes_back(is_moved: bool) -> None:
    world = World()
    world.start()
    world.store(1)
    world.store(1)
    world.checkpoint()
    world.store(1)
    messages = world.take(Area.INCOMING, 3)
    assert len(messages) == 3
    jump(world, -YEAR_S)
    looked_at(world)
    assert world.manager is not None
    for message in messages:
        world.manager.give_back(message, message.entries, 1.0)
    if is_moved:
        world.checkpoint()
    world.settle_down(1.5)
    assert len(world.take(Area.INCOMING, 3)) == 3


def test_new_mail_that_waits_its_turn_when_the_clock_is_set_back_goes_on() -> None:
    world = World()
    world.start()
    for _ in range(5):
        world.store(1)
    jump(world, -YEAR_S)
    looked_at(world)
    world.checkpoint()
    assert len(world.take(Area.INCOMING, 10)) == 5


def test_mail_that_the_disk_is_slow_to_write_while_the_clock_is_set_back_goes_on() -> None:
    world = World()
    world.start()
    world.store(1)
    answers: list[bool] = []
    world.send(1, 100, b"a@b.example", answers.append)
    (message,) = world.take(Area.INCOMING, 1)
    assert world.manager is not None
    settle(world.manager, message, [(message.entries[0], DEFERRED)])
    jump(world, -YEAR_S)
    world.take(Area.BOUNCES, 1)
    assert not answers
    world.settle_down(3)
    assert answers == [True]
    assert len(world.take(Area.INCOMING, 10)) == 1
    world.later(2000)
    assert len(world.take(Area.DEFERRED, 10)) == 1


def test_a_listing_tells_when_what_rests_is_tried() -> None:
    world = World()
    world.start()
    world.store(1)
    world.defer()
    world.checkpoint()
    jump(world, -YEAR_S)
    looked_at(world)
    (entry,) = world.live().values()
    assert 890 <= entry.due_at - world.harness.now() <= 1000


def test_how_long_checkpoints_take_is_counted_by_a_clock_that_does_not_jump() -> None:
    world = World()
    world.start()
    world.store(1)
    queue = queue_of(world)
    queue._now = queue.state.now = lambda: world.harness.now() + next(jumps)
    jumps = itertools.count(0, int(YEAR_S))
    world.checkpoint()
    assert queue.checkpoints.counts.made
    assert queue.checkpoints.counts.took_s < 10
