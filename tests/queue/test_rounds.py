"""Which bounces are reported together, and when."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.rounds import HANG_S, LINGER_S, MAX_TOGETHER, Rounds


def bounces(spool_id: int, *numbers: int, of: int = 5) -> Message:
    """These bounces of a message."""
    entries = [Entry(number, b"r@d.example", Area.BOUNCES, 0.0) for number in numbers]
    return Message(SpoolId(spool_id), b"s@a.example", b"-", False, 0.0, 1, of, entries)


def told(messages: Iterable[Message]) -> list[tuple[int, list[int]]]:
    return [(message.spool_id, [entry.number for entry in message.entries]) for message in messages]


class World:
    """Rounds, and which messages have entries out for delivery."""

    def __init__(self, max_waiting: int = 10_000) -> None:
        self.rounds = Rounds(max_waiting)
        self.out: set[int] = set()

    def fail(self, now: float, *messages: Message) -> None:
        """These entries fail, durably, and the provider hands them out."""
        for message in messages:
            self.rounds.bounced(message.spool_id, len(message.entries), now)
            self.rounds.sure(message.spool_id, len(message.entries), now)
            self.rounds.collect(message)

    def over(self, now: float) -> list[tuple[int, list[int]]]:
        self.rounds.advance(now, self.out.__contains__)
        return told(self.rounds.take(100_000))


def test_bounces_of_no_round_are_ready_at_once() -> None:
    world = World()
    world.rounds.collect(bounces(1, 2))
    world.rounds.collect(bounces(2, 1))
    world.rounds.collect(bounces(1, 1))
    assert world.rounds.ready_count == 3
    assert world.over(0.0) == [(1, [1, 2]), (2, [1])]
    assert world.rounds.ready_count == 0


def test_what_fails_in_one_round_comes_together_when_none_is_out() -> None:
    world = World()
    world.out.add(1)
    world.fail(0.0, bounces(1, 1))
    world.fail(5.0, bounces(1, 3))
    assert world.over(10.0) == []
    world.out.clear()
    world.rounds.quiet(SpoolId(1), 10.0)
    assert world.over(10.0 + LINGER_S - 0.01) == []
    assert world.over(10.0 + LINGER_S) == [(1, [1, 3])]
    assert not world.rounds.has_open
    assert world.rounds.waiting_count == 0


def test_a_follow_up_take_keeps_the_round_open() -> None:
    world = World()
    world.fail(0.0, bounces(1, 1))
    world.rounds.quiet(SpoolId(1), 0.0)
    world.out.add(1)
    assert world.over(1.0) == []
    world.fail(2.0, bounces(1, 2))
    world.out.clear()
    world.rounds.quiet(SpoolId(1), 2.0)
    assert world.over(2.0 + LINGER_S) == [(1, [1, 2])]


def test_it_lingers_from_the_last_time_that_none_was_out() -> None:
    world = World()
    world.fail(0.0, bounces(1, 1))
    world.rounds.quiet(SpoolId(1), 0.0)
    world.rounds.quiet(SpoolId(1), 0.3)
    assert world.over(LINGER_S) == []
    assert world.over(0.3 + LINGER_S) == [(1, [1])]


def test_one_that_hangs_holds_the_others_a_minute() -> None:
    world = World()
    world.out.add(1)
    world.fail(7.0, bounces(1, 1))
    assert world.over(7.0 + HANG_S - 0.01) == []
    assert world.over(7.0 + HANG_S) == [(1, [1])]
    world.fail(100.0, bounces(1, 2))
    world.out.clear()
    world.rounds.quiet(SpoolId(1), 100.0)
    assert world.over(101.0) == [(1, [2])]


def test_a_bounce_that_is_not_durable_yet_is_waited_for() -> None:
    world = World()
    spool_id = SpoolId(1)
    world.fail(0.0, bounces(1, 1))
    world.rounds.bounced(spool_id, 1, 0.0)
    world.rounds.quiet(spool_id, 0.0)
    assert world.over(3.0) == []
    world.rounds.sure(spool_id, 1, 3.0)
    world.rounds.collect(bounces(1, 2))
    assert world.over(3.0 + LINGER_S) == [(1, [1, 2])]


def test_rounds_of_other_messages_do_not_wait_for_it() -> None:
    world = World()
    world.out.add(1)
    world.fail(0.0, bounces(1, 1), bounces(2, 1))
    world.rounds.quiet(SpoolId(2), 0.0)
    assert world.over(1.0) == [(2, [1])]


def test_what_was_cut_by_a_full_take_is_made_whole() -> None:
    world = World()
    world.rounds.linger(SpoolId(1), 0.0)
    world.rounds.collect(bounces(1, 1, 2))
    assert world.over(0.0) == []
    world.rounds.collect(bounces(1, 3))
    assert world.over(LINGER_S) == [(1, [1, 2, 3])]


def test_beyond_what_may_wait_the_oldest_is_over_early() -> None:
    world = World(max_waiting=3)
    world.out |= {1, 2}
    world.fail(0.0, bounces(1, 1, 2), bounces(2, 1))
    assert world.over(0.0) == []
    world.fail(0.0, bounces(2, 2))
    assert world.over(0.0) == [(1, [1, 2])]
    assert world.rounds.waiting_count == 2


def test_nothing_waits_where_nothing_may() -> None:
    world = World(max_waiting=0)
    world.out.add(1)
    world.fail(0.0, bounces(1, 1))
    assert world.over(0.0) == [(1, [1])]


def test_a_limit_is_kept_but_for_the_bounces_of_one_message() -> None:
    world = World()
    for spool_id in (1, 2, 3):
        world.rounds.collect(bounces(spool_id, 1, 2, 3))
    assert told(world.rounds.take(4)) == [(1, [1, 2, 3]), (2, [1, 2, 3])]
    assert told(world.rounds.take(1)) == [(3, [1, 2, 3])]


def test_more_than_a_report_holds_makes_several() -> None:
    world = World()
    world.rounds.collect(bounces(1, *range(1, 2 * MAX_TOGETHER + 2)))
    assert [len(message.entries) for message in world.rounds.take(10**6)] == [MAX_TOGETHER, MAX_TOGETHER, 1]
    assert world.rounds.ready_count == 0


def test_it_says_when_it_wants_to_be_looked_at() -> None:
    world = World()
    assert world.rounds.next_at() is None
    world.fail(3.0, bounces(1, 1))
    assert world.rounds.next_at() == 3.0 + HANG_S
    world.rounds.quiet(SpoolId(1), 4.0)
    assert world.rounds.next_at() == 4.0 + LINGER_S
    at = world.rounds.next_at()
    assert at is not None
    assert world.over(at) == [(1, [1])]
    assert world.rounds.next_at() is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["fail", "unsure", "sure", "quiet", "out", "linger"]), st.integers(1, 3), st.floats(0, 30)),
    max_size=40,
)


@settings(deadline=None)
@given(STEPS, st.integers(0, 6))
def test_whatever_happens_each_bounce_comes_out_once_and_in_time(
    steps: list[tuple[str, int, float]], max_waiting: int
) -> None:
    world = World(max_waiting)
    now = 0.0
    given: dict[tuple[int, int], float] = {}
    came: list[tuple[int, int]] = []

    def look() -> None:
        for spool_id, numbers in world.over(now):
            came.extend((spool_id, number) for number in numbers)
        for bounce, at in given.items():
            assert bounce in came or now < at + HANG_S

    for step, spool_id, wait_s in steps:
        now += wait_s
        if step == "fail":
            number = 1 + sum(known[0] == spool_id for known in given)
            world.fail(now, bounces(spool_id, number))
            given[spool_id, number] = now
        elif step == "unsure":
            world.rounds.bounced(SpoolId(spool_id), 1, now)
        elif step == "sure":
            world.rounds.sure(SpoolId(spool_id), 1, now)
        elif step == "quiet":
            world.out.discard(spool_id)
            world.rounds.quiet(SpoolId(spool_id), now)
        elif step == "linger":
            world.rounds.linger(SpoolId(spool_id), now)
        else:
            world.out.add(spool_id)
        assert world.rounds.waiting_count <= max_waiting
        look()
    now += HANG_S
    look()
    assert sorted(came) == sorted(given)
    assert world.rounds.waiting_count == world.rounds.ready_count == 0
    assert not world.rounds.has_open
