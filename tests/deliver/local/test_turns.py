"""The turns of users for local deliveries."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.local.turns import MAX_MOVING, SHARE, Turns
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message


def job(number: int = 1, queued_at: float = 0.0) -> Job:
    entry = Entry(1, b"x@home.example", Area.INCOMING, 0.0)
    return Job(Message(SpoolId(number), b"s@a.example", b"-", False, 0.0, 9, 1, [entry]), [entry], queued_at)


def anyone(_: Job) -> bool:
    return True


class Deliveries:
    """Turns, and deliveries that move until they are ended."""

    def __init__(self) -> None:
        self.moving: Counter[bytes] = Counter()
        self.turns = Turns(self.moving)
        self.number = 0

    def add(self, user: bytes, count: int = 1) -> None:
        for _ in range(count):
            self.number += 1
            self.turns.add(user, job(self.number))

    def begin(self, most: int = 100) -> str:
        """The users whose deliveries begin, by their first letters."""
        begun = ""
        while len(begun) < most and (turn := self.turns.take(anyone)) is not None:
            user = turn[0]
            self.moving[user] += 1
            self.turns.update(user)
            begun += user[:1].decode()
        return begun

    def end(self, user: bytes) -> None:
        self.moving[user] -= 1
        self.turns.update(user)


def test_users_take_turns_whatever_waits_for_each() -> None:
    line = Deliveries()
    line.add(b"ann", 30)
    line.add(b"joe", 2)
    line.add(b"kim")
    assert line.begin(5) == "aajjk"


def test_one_user_alone_never_has_more_than_half() -> None:
    line = Deliveries()
    line.add(b"ann", 30)
    assert line.begin() == "a" * MAX_MOVING
    line.add(b"joe")
    assert line.begin() == "j"
    line.end(b"ann")
    assert line.begin() == "a"


def test_beyond_his_share_a_user_comes_after_all_who_are_within_theirs() -> None:
    line = Deliveries()
    line.add(b"ann", 30)
    assert line.begin(4) == "aaaa"
    line.add(b"joe", 3)
    line.add(b"kim", 1)
    assert line.begin(4) == "jjka"  # joe's third competes with ann's fifth
    line.end(b"ann")
    line.end(b"ann")
    line.end(b"ann")
    line.end(b"ann")
    assert line.begin(1) == "a"  # one moves: within the share again
    assert SHARE == 2


def test_who_is_parked_is_not_asked_for_until_unparked() -> None:
    line = Deliveries()
    line.add(b"ann", 2)
    line.add(b"joe", 1)
    turn = line.turns.take(anyone)
    assert turn is not None
    line.turns.park(*turn)
    line.add(b"ann", 1)
    assert line.begin() == "j"
    line.turns.unpark()
    assert line.begin() == "aaa"
    assert line.turns.waiting == 0
    line.turns.unpark()
    assert line.begin() == ""


def test_the_oldest_that_waits_is_known() -> None:
    turns = Turns({})
    assert turns.oldest_queued_at() == float("inf")
    turns.add(b"ann", job(1, queued_at=5.0))
    turns.add(b"joe", job(2, queued_at=3.0))
    turns.add(b"joe", job(3, queued_at=9.0))
    assert turns.oldest_queued_at() == 3.0
    first = turns.take(lambda job: job.queued_at == 3.0)
    assert first is not None
    assert first[0] == b"joe"
    assert turns.oldest_queued_at() == 5.0


@pytest.mark.parametrize(
    ("waiting", "keep", "kept"),
    [
        ({"a": 20, "b": 3, "c": 1}, 10, {"a": 6, "b": 3, "c": 1}),
        ({"a": 5, "b": 5}, 6, {"a": 3, "b": 3}),
        ({"a": 1, "b": 1, "c": 1}, 2, {"b": 1, "c": 1}),
        ({"a": 2}, 5, {"a": 2}),
        ({"a": 2, "b": 9}, 0, {}),
    ],
)
def test_what_is_too_much_is_taken_from_those_with_the_most(
    waiting: dict[str, int], keep: int, kept: dict[str, int]
) -> None:
    line = Deliveries()
    for user, count in waiting.items():
        line.add(user.encode(), count)
    taken = list(line.turns.take_excess(keep))
    assert len(taken) == sum(waiting.values()) - sum(kept.values())
    assert line.turns.waiting == sum(kept.values())
    if kept.get("a") == 6:
        assert [one.message.spool_id for one in taken] == list(range(20, 6, -1))  # the newest first
    left: Counter[str] = Counter()
    while (turn := line.turns.take(anyone)) is not None:
        left[turn[0].decode()] += 1
        line.turns.update(turn[0])
    assert left == kept


def test_nothing_is_forgotten_and_nobody_starves_whatever_happens() -> None:
    chance = random.Random(7)
    line, put, taken, begun = Deliveries(), 0, 0, 0
    users = [b"u%d" % number for number in range(6)]
    for _ in range(5000):
        match chance.randrange(6):
            case 0 | 1:
                line.add(chance.choice(users))
                put += 1
            case 2:
                begun += len(line.begin(1))
            case 3:
                moving = [user for user in users if line.moving[user]]
                if moving:
                    line.end(chance.choice(moving))
            case 4:
                turn = line.turns.take(anyone) if chance.random() < 0.3 else None
                if turn is not None:
                    line.turns.park(*turn)
            case 5:
                if chance.random() < 0.2:
                    line.turns.unpark()
                elif chance.random() < 0.05:
                    taken += len(list(line.turns.take_excess(chance.randrange(5))))
        assert max(line.moving.values(), default=0) <= MAX_MOVING
        assert line.turns.waiting == put - taken - begun
    line.turns.unpark()
    while line.turns.waiting:
        for user in users:
            while line.moving[user]:
                line.end(user)
        progress = len(line.begin())
        assert progress > 0
        begun += progress
    assert put == taken + begun
