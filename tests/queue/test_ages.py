"""How old messages are, whatever the clock did; and how a jump is told from a suspended machine."""

from __future__ import annotations

import random

import pytest
from twisted.internet.task import Clock

from mailismus.mail.ids import SpoolId
from mailismus.queue.clock.ages import MAX_JUMPS, Ages, Jump
from mailismus.queue.clock.clockwatch import CLOCK_JUMP_S, ClockWatch

DAY_S = 86400.0


class World:
    """Three clocks, and messages with their true ages."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000.0)
        self.monotonic_s = self.elapsed_s = 100.0
        self.told: list[Jump] = []
        self.ages = Ages()
        self.watch = ClockWatch(self.clock, lambda: self.monotonic_s, lambda: self.elapsed_s)
        self.watch.listen(self._jumped)
        self.last = 0
        self.written: dict[SpoolId, tuple[float, float, float]] = {}
        """What was written down, and when by the other clocks."""

    def _jumped(self, jump: Jump, now: float) -> None:
        assert now == self.clock.seconds()
        self.told.append(jump)
        self.ages.jumped(jump)

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.monotonic_s += seconds
        self.elapsed_s += seconds

    def step(self, seconds: float) -> None:
        self.clock.rightNow += seconds

    def suspend(self, seconds: float) -> None:
        self.clock.rightNow += seconds
        self.elapsed_s += seconds

    def begin(self) -> SpoolId:
        self.last += 1
        self.ages.begun(SpoolId(self.last))
        return SpoolId(self.last)

    def arrive(self, spool_id: SpoolId) -> None:
        now = self.watch.now()
        self.ages.arrived(spool_id)
        self.written[spool_id] = now, self.monotonic_s, self.elapsed_s

    def check(self) -> None:
        now = self.watch.now()
        for spool_id, (received_at, monotonic_s, elapsed_s) in self.written.items():
            age_s, awake_s = (ask(spool_id, received_at, now) for ask in (self.ages.age_s, self.ages.awake_s))
            assert awake_s == pytest.approx(self.monotonic_s - monotonic_s, abs=0.01)
            assert age_s == pytest.approx(self.elapsed_s - elapsed_s, abs=0.01)


def test_ages_are_true_whatever_the_clock_did() -> None:
    for seed in range(50):
        chance = random.Random(seed)
        world = World()
        arriving: list[SpoolId] = []
        for _ in range(60):
            match chance.randrange(6):
                case 0:
                    arriving.append(world.begin())
                case 1:
                    if arriving:
                        world.arrive(arriving.pop(chance.randrange(len(arriving))))
                case 2:
                    world.step(chance.choice((-400, -1, 10, 400)) * DAY_S)
                case 3:
                    world.suspend(chance.choice((0.37, 7.19)) * DAY_S)
                case 4:
                    world.check()
                case _:
                    world.wait(chance.uniform(0, 10_000))
        world.check()


def test_a_message_of_an_earlier_run_is_as_old_as_the_clock_says() -> None:
    world = World()
    world.last = 10
    world.arrive(world.begin())
    world.step(DAY_S)
    now = world.watch.now()
    assert world.ages.age_s(SpoolId(3), now - 5.0, now) == 5.0


def test_many_jumps_take_no_more_memory_than_some() -> None:
    world = World()
    world.arrive(world.begin())
    for _ in range(MAX_JUMPS + 10):
        late = world.begin()
        world.step(DAY_S)
        world.watch.now()
        world.arrive(late)
    del world.written[SpoolId(1)]
    for number in range(2, 12):
        del world.written[SpoolId(number)]
    world.check()
    assert len(world.ages._jumps) == MAX_JUMPS
    assert len(world.ages._late) <= MAX_JUMPS


def test_a_step_and_a_suspended_machine_are_told_apart() -> None:
    world = World()
    world.step(-DAY_S)
    world.watch.now()
    world.suspend(10 * DAY_S)
    world.watch.now()
    world.step(600.0)
    world.suspend(DAY_S)
    world.watch.now()
    assert [(jump.jump_s, jump.step_s) for jump in world.told] == [
        (-DAY_S, -DAY_S),
        (10 * DAY_S, 0.0),
        (DAY_S + 600.0, 600.0),
    ]


def test_a_clock_that_drifts_does_not_jump_and_a_beginning_is_none() -> None:
    world = World()
    for _ in range(100):
        world.wait(10.0)
        world.step(CLOCK_JUMP_S - 1)
        world.watch.now()
    assert world.told == []
    assert world.watch.steady_s == pytest.approx(1000.0)
    world.step(CLOCK_JUMP_S + 1)
    assert world.watch.now() == world.watch.jumped_at
    assert world.watch.steady_s == 0.0
