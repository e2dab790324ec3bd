"""Which local deliveries hang, and whose mail waits for that."""

from __future__ import annotations

import math

import pytest

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.local.hanging import (
    ALL_HANG,
    FILE_SYSTEM_HANGS,
    HANGS_AFTER_S,
    LIMIT,
    MAX_THREADS,
    STUCK_AFTER_S,
    USER_HANGS,
    ActiveDeliveries,
)
from tests.deliver.local.test_turns import job


class World:
    """Deliveries under way; users' names begin with that of their file system, and with `?` where it is not known."""

    def __init__(self) -> None:
        self.underway = ActiveDeliveries(lambda user: None if user.startswith(b"?") else user[:1])
        self.now = 1000.0

    def begin(self, user: bytes) -> Job:
        made = job()
        made.begun_at = self.now
        self.underway.begin(made, user)
        return made

    def pass_s(self, seconds: float) -> None:
        self.now += seconds
        self.underway.update(self.now)

    def end(self, made: Job, *, has_answered: bool = True) -> bool:
        return self.underway.end(made, self.now, has_answered=has_answered)

    def reason(self, user: bytes) -> bytes:
        block = self.underway.blockage_of(user, self.now)
        return b"" if block is None else block.reply.text


def test_what_hangs_leaves_its_room_to_others_and_keeps_its_thread() -> None:
    world = World()
    jobs = [world.begin(b"a%d" % number) for number in range(LIMIT)]
    assert world.underway.room(LIMIT, -math.inf) == 0
    world.pass_s(HANGS_AFTER_S - 1)
    assert world.underway.room(LIMIT, -math.inf) == 0
    world.pass_s(1)
    assert world.underway.room(LIMIT, -math.inf) == LIMIT
    assert len(world.underway) == world.underway.hanging == LIMIT
    assert world.underway.moving_of == {}
    assert world.underway.stuck(world.now) == []
    world.pass_s(STUCK_AFTER_S - HANGS_AFTER_S)
    assert [hang.job for hang in world.underway.stuck(world.now)] == jobs


def test_threads_are_bounded_however_many_hang() -> None:
    world = World()
    for number in range(MAX_THREADS):
        world.begin(b"?%d" % number)
    world.pass_s(HANGS_AFTER_S)
    assert world.reason(b"?other") == ALL_HANG.text


def test_a_user_with_one_that_hangs_gets_no_other_until_it_is_over() -> None:
    world = World()
    hangs, moves = world.begin(b"a1"), world.begin(b"a2")
    world.pass_s(HANGS_AFTER_S - 1)
    world.end(moves)
    moves = world.begin(b"a2")
    world.pass_s(2)
    world.end(moves)
    assert world.reason(b"a1") == USER_HANGS.text
    assert world.reason(b"a2") == b""
    block = world.underway.blockage_of(b"a1", world.now)
    assert block is not None
    assert block.since == 1000.0
    assert world.end(hangs)
    assert world.reason(b"a1") == b""
    assert world.underway.hanging == 0


def test_a_delivery_that_moves_piece_by_piece_does_not_hang() -> None:
    world = World()
    large = world.begin(b"a1")
    for _ in range(20):
        world.pass_s(HANGS_AFTER_S - 1)
        world.underway.step(large, world.now, is_reading=False)
    assert world.underway.hanging == 0
    world.pass_s(HANGS_AFTER_S)
    assert world.reason(b"a1") == USER_HANGS.text
    world.underway.step(large, world.now, is_reading=False)
    world.pass_s(1)
    assert world.reason(b"a1") == b""


def test_one_that_waits_for_its_content_is_held_against_nobody() -> None:
    world = World()
    large = world.begin(b"a1")
    world.underway.step(large, world.now, is_reading=True)
    world.pass_s(STUCK_AFTER_S)
    (hang,) = world.underway.stuck(world.now)
    assert hang.is_reading
    assert world.reason(b"a1") == world.reason(b"a2") == b""


def test_a_file_system_that_answers_others_is_not_held_against_them() -> None:
    world = World()
    world.begin(b"a1")
    world.pass_s(HANGS_AFTER_S)
    for _ in range(100):
        world.pass_s(HANGS_AFTER_S)
        assert world.reason(b"a2") == b""
        world.end(world.begin(b"a2"))


def test_while_a_file_system_is_suspected_one_delivery_at_a_time_may_show_that_it_answers() -> None:
    world = World()
    world.begin(b"a1")
    world.pass_s(HANGS_AFTER_S)
    assert world.reason(b"a2") == b""
    trial = world.begin(b"a2")
    assert world.reason(b"a3") == FILE_SYSTEM_HANGS.text
    assert world.reason(b"b1") == b""
    assert world.end(trial)
    assert world.reason(b"a3") == b""
    world.begin(b"a3")
    assert world.reason(b"a4") == b""


def test_an_end_that_says_nothing_of_the_file_system_shows_nothing() -> None:
    world = World()
    world.begin(b"a1")
    world.pass_s(HANGS_AFTER_S)
    trial = world.begin(b"a2")
    world.begin(b"a3")
    world.end(trial, has_answered=False)
    assert world.reason(b"a4") == FILE_SYSTEM_HANGS.text


def test_a_file_system_that_hangs_for_a_day_takes_few_threads_and_stays_on_trial() -> None:
    world = World()
    for number in range(LIMIT):
        world.begin(b"a%d" % number)
    trials = 0
    for _ in range(86400 // 5):
        world.pass_s(5)
        if world.reason(b"u") == b"":
            world.end(world.begin(b"u"))  # another file system works all the time
        user = b"a-%d" % trials
        if world.reason(user) == b"":
            world.begin(user)
            trials += 1
    assert 8 <= trials <= 16
    assert len(world.underway) < MAX_THREADS


def test_the_first_that_ends_after_a_thaw_frees_all_others() -> None:
    world = World()
    jobs = [world.begin(b"a%d" % number) for number in range(3)]
    world.pass_s(STUCK_AFTER_S)
    world.begin(b"a4")
    assert world.reason(b"a5") == FILE_SYSTEM_HANGS.text
    assert world.end(jobs[0])
    assert world.reason(b"a5") == b""
    assert world.reason(b"a1") == USER_HANGS.text


def test_a_file_system_that_hangs_again_is_suspected_again() -> None:
    world = World()
    world.begin(b"a1")
    world.pass_s(HANGS_AFTER_S)
    world.end(world.begin(b"a2"))
    assert world.reason(b"a3") == b""
    world.pass_s(1)
    for number in range(3, 6):
        world.begin(b"a%d" % number)
    world.pass_s(HANGS_AFTER_S - 1)
    world.begin(b"a7")
    world.pass_s(1)
    assert world.reason(b"a8") == FILE_SYSTEM_HANGS.text


def test_at_the_end_all_are_given_with_their_users() -> None:
    world = World()
    hangs = world.begin(b"a1")
    world.pass_s(HANGS_AFTER_S)
    moves = world.begin(b"b1")
    assert world.underway.longest_s(world.now) == HANGS_AFTER_S
    assert world.underway.end_all() == {hangs: b"a1", moves: b"b1"}
    assert len(world.underway) == world.underway.hanging == 0
    assert world.underway.longest_s(world.now) == 0.0
    assert hangs not in world.underway


def test_an_ordinary_end_costs_no_look_at_file_systems() -> None:
    asked: list[bytes] = []
    underway = ActiveDeliveries(lambda user: asked.append(user) or None)  # type: ignore[func-returns-value]
    made = job()
    underway.begin(made, b"joe")
    assert underway.blockage_of(b"joe", 5.0) is None
    assert not underway.end(made, 5.0, has_answered=True)
    assert asked == []
    assert underway.longest_s(5.0) == pytest.approx(0.0)


def test_the_pace_counts_what_began_lately_alone() -> None:
    world = World()
    world.begin(b"old")
    world.pass_s(1)
    world.begin(b"a")
    assert world.underway.room(2, world.now - 0.1) == 1
    assert world.underway.room(1, world.now - 0.1) == 0
    assert world.underway.room(2, world.now - 2) == 0
    assert world.underway.room(100, world.now - 0.1) == LIMIT - 2, "and there are no more workers than there are"
