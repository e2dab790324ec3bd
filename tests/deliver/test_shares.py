"""Shares of messages and senders in a pool of equal workers, and the line of equal jobs."""

from __future__ import annotations

import pytest

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.line import Line
from mailismus.deliver.schedule.shares import PoolShares
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message


def message(number: int = 1, sender: bytes = b"s@a.example") -> Message:
    entry = Entry(1, b"x@home.example", Area.INCOMING, 0.0)
    return Message(SpoolId(number), sender, b"-", False, 0.0, 9, 1, [entry])


def job(number: int = 1, sender: bytes = b"s@a.example", recipients: int = 1) -> Job:
    one = message(number, sender)
    return Job(one, list(one.entries) * recipients, 0.0)


@pytest.mark.parametrize(
    ("size", "most", "scale", "held", "free", "may"),
    [
        (100, 20, 10, 19, 1, True),
        (100, 20, 10, 20, 2, False),  # neither fewer than 20 nor fewer than 10 times those
        (100, 20, 10, 20, 3, True),
        (100, 20, 10, 90, 10, True),
        (100, 20, 10, 90, 9, False),
        (10, 20, 1, 4, 1, True),
        (10, 20, 1, 5, 5, False),  # half of the pool
        (10, 3, 1, 3, 3, False),
        (1, 20, 1, 0, 1, True),
    ],
)
def test_a_message_may_have_less_than_the_maximum_or_than_some_times_the_free_workers(
    size: int, most: int, scale: int, held: int, free: int, may: bool
) -> None:
    shares = PoolShares(ScheduleLimits(max_concurrency=most, scale=scale), size)
    for _ in range(held):
        shares.hold(message())
    assert shares.allows(message(), free) is may
    assert shares.allows_sender(b"s@a.example", free) is may
    assert shares.allows(message(2), free)
    assert shares.allows_sender(b"t@a.example", free)


def test_a_sender_of_many_messages_may_have_no_more_than_one_message() -> None:
    shares = PoolShares(ScheduleLimits(), 100)
    number = 0
    while number < 100 and shares.allows_sender(b"s@a.example", 100 - number):
        number += 1
        shares.hold(message(number))
    assert number == 91
    assert shares.allows(message(number + 1), 100 - number)
    shares.release(message(number))
    assert shares.allows_sender(b"s@a.example", 101 - number)


def test_nothing_is_kept_of_a_message_without_workers() -> None:
    shares = PoolShares(ScheduleLimits(), 100)
    shares.hold(message())
    shares.hold(message())
    shares.release(message())
    assert shares._of_message == {1: 1}
    assert shares._of_sender == {b"s@a.example": 1}
    shares.release(message())
    assert shares._of_message == {}
    assert shares._of_sender == {}


def test_a_reload_changes_the_shares_at_once() -> None:
    limits = ScheduleLimits()
    shares = PoolShares(limits, 100)
    for _ in range(20):
        shares.hold(message())
    assert not shares.allows(message(), 1)
    limits.become(ScheduleLimits(max_concurrency=30))
    assert shares.allows(message(), 1)


def order_of(line: Line) -> list[int]:
    taken = []
    while (found := line.take(lambda _: True)) is not None:
        taken.append(int(found.message.spool_id))
    return taken


def test_in_a_line_of_equal_jobs_a_sender_has_one_in_its_turn() -> None:
    line = Line(is_by_job=True)
    for _ in range(3):
        line.add(job(1, recipients=200))
    line.add(job(2))
    line.add(job(3, b"t@a.example"))
    line.add(job(3, b"t@a.example"))
    line.add(job(4, b"u@a.example", recipients=60))
    assert order_of(line) == [1, 3, 4, 2, 3, 1, 1]
    assert len(line) == 0


def test_senders_that_may_not_are_passed_over_without_a_look_at_their_messages() -> None:
    line = Line(is_by_job=True)
    asked: list[Job] = []

    def may_go(one: Job) -> bool:
        asked.append(one)
        return True

    for number in range(100):
        line.add(job(number))
    line.add(job(200, b"t@a.example"))
    taken = line.take(may_go, lambda sender: sender.startswith(b"t"))
    assert taken is not None
    assert taken.message.spool_id == 200
    assert set(asked) == {taken}
    assert line.take(may_go, lambda sender: sender.startswith(b"t")) is None
    assert order_of(line) == list(range(100))


def test_a_job_that_is_removed_leaves_nothing_behind() -> None:
    line = Line()
    jobs = [job(1), job(1), job(2), job(3, b"t@a.example")]
    for one in jobs:
        line.add(one)
    assert line.has_sender(b"t@a.example")
    assert [line.remove(jobs[at]) for at in (0, 3, 2, 3, 0)] == [True, True, True, False, False]
    assert not line.has_sender(b"t@a.example")
    assert len(line) == 1
    assert list(line) == [jobs[1]]
    assert line.take(lambda _: True) is jobs[1]
    assert len(line) == 0
    assert not line.has_sender(b"s@a.example")
