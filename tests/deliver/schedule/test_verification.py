"""The pseudo-message of verifications: a share of its own, whatever real messages do."""

from __future__ import annotations

from mailismus.deliver.jobs.concurrency import Concurrency, WorkerShare
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.pool import Pool
from mailismus.deliver.schedule.verification import PSEUDO_ID, Verification
from mailismus.mail.ids import SpoolId


def fill(pool: Pool, *messages: Concurrency) -> list[int]:
    """Give workers in turns until nobody may have another one. Return how many each got."""
    has_grown = True
    while has_grown:
        has_grown = False
        for one in messages:
            if pool.has_worker and pool.allows_message(one):
                pool.opened()
                one.add(object())
                has_grown = True
    return [len(one.workers) for one in messages]


def test_all_questions_together_have_few_workers_of_a_busy_server() -> None:
    pool = Pool(ScheduleLimits(max_connections=100, max_concurrency=20, scale=10))
    for _ in range(100):
        pool.opened()
    verification = Verification()
    for worker in range(5):
        assert pool.allows_message(verification)
        verification.add(worker)
    assert not pool.allows_message(verification)


def test_alone_they_leave_half_of_an_idle_server() -> None:
    pool = Pool(ScheduleLimits(max_connections=100, max_concurrency=20, scale=10))
    assert fill(pool, Verification()) == [50]


def test_beside_a_large_message_they_have_half_of_what_it_leaves() -> None:
    pool = Pool(ScheduleLimits(max_connections=1000, max_concurrency=20, scale=10))
    assert fill(pool, Concurrency(SpoolId(1))) == [910]
    assert fill(pool, Verification()) == [45]


def test_they_leave_a_large_message_nearly_all() -> None:
    pool = Pool(ScheduleLimits(max_connections=1000, max_concurrency=20, scale=10))
    verification = Verification(WorkerShare(1, 0))
    assert fill(pool, Concurrency(SpoolId(1)), verification) == [909, 1]


def test_they_give_back_workers_beyond_their_share_sooner_than_a_message() -> None:
    pool = Pool(ScheduleLimits(max_connections=100, max_concurrency=20, scale=10))
    for _ in range(98):
        pool.opened()
    message, verification = Concurrency(SpoolId(1)), Verification()
    for worker in range(21):
        message.add(worker)
        verification.add(worker)
    assert pool.exceeds(verification)
    assert not pool.exceeds(message)


def test_their_share_is_at_most_half_of_a_small_pool() -> None:
    pool = Pool(ScheduleLimits(max_connections=4))
    for _ in range(4):
        pool.opened()
    verification = Verification()
    assert pool.allows_message(verification)
    verification.add("a")
    verification.add("b")
    assert not pool.allows_message(verification)


def test_the_pseudo_message_never_ends() -> None:
    verification = Verification()
    verification.count_job()
    assert not verification.end_job()
    assert verification.spool_id == PSEUDO_ID
