"""The memory of what hosts can't do: it ages, it is bounded, it is by address and port."""

from __future__ import annotations

from mailismus.deliver.habits import REMEMBERED_S, STRANGER, Habit, Habits
from mailismus.smtp.pipelining import Pipelining

HOST = ("192.0.2.1", 25)
BROKEN = Habit(Pipelining.BROKEN)


def test_a_host_is_a_stranger_until_something_is_learned_of_it() -> None:
    habits = Habits()
    assert habits.of(HOST, 0.0) is STRANGER
    habits.note(HOST, BROKEN, 0.0)
    assert habits.of(HOST, 1.0) == BROKEN
    assert habits.of(("192.0.2.1", 26), 1.0) is STRANGER
    habits.note(HOST, Habit(Pipelining.BROKEN, needs_helo=True), 2.0)
    assert habits.of(HOST, 2.0).needs_helo


def test_what_was_learned_long_ago_is_forgotten_however_often_it_was_used() -> None:
    habits = Habits()
    habits.note(HOST, BROKEN, 5.0)
    for second in range(0, int(REMEMBERED_S) + 1, 60):
        assert habits.of(HOST, 5.0 + second) == BROKEN
    assert habits.of(HOST, 5.1 + REMEMBERED_S) is STRANGER
    assert len(habits) == 0


def test_the_oldest_knowledge_gives_way() -> None:
    habits = Habits(max_hosts=3)
    hosts = [("192.0.2.1", port) for port in range(4)]
    for host in hosts[:3]:
        habits.note(host, BROKEN, 0.0)
    habits.note(hosts[0], BROKEN, 1.0)
    habits.note(hosts[3], BROKEN, 1.0)
    assert [habits.of(host, 1.0) for host in hosts] == [BROKEN, STRANGER, BROKEN, BROKEN]
    assert len(habits) == 3


def test_a_host_that_has_no_habit_any_more_takes_no_room() -> None:
    habits = Habits()
    habits.note(HOST, Habit(needs_helo=True), 0.0)
    habits.note(HOST, Habit(), 1.0)
    assert len(habits) == 0
