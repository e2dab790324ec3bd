"""The pool of workers and the concurrency of a message."""

from __future__ import annotations

from mailismus.deliver.concurrency import Concurrency, WorkerShare
from mailismus.deliver.schedule.limits import NO_LIMIT, ScheduleLimits
from mailismus.deliver.schedule.pool import Pool
from mailismus.mail.ids import SpoolId
from tests.deliver.schedule.jobs import concurrency
from tests.deliver.schedule.world import World


def pool(max_connections: int, max_concurrency: int = 1, scale: int = 1, is_open: int = 0) -> Pool:
    made = Pool(ScheduleLimits(max_connections, max_concurrency=max_concurrency, scale=scale))
    for _ in range(is_open):
        made.opened()
    return made


def most(workers: Pool) -> int:
    """The workers that a message gets if none becomes free."""
    return next(count for count in range(1000) if not workers.allows(concurrency(count)))


def test_allowed_new_worker_is_strict() -> None:
    assert most(pool(100, max_concurrency=7, is_open=100)) == 7
    assert most(pool(100, max_concurrency=1, scale=3, is_open=96)) == 12


def test_the_concurrency_of_a_message_is_at_most_half_of_the_pool() -> None:
    assert most(pool(10, max_concurrency=20, is_open=10)) == 5
    assert most(pool(11, max_concurrency=20, is_open=11)) == 5
    assert most(pool(1, max_concurrency=20, is_open=1)) == 1
    assert ScheduleLimits(max_connections=2500, max_concurrency=20).always(WorkerShare(20, 1)) == 20


def test_scale_times_the_free_workers() -> None:
    """A scale of 10 leaves a message 91 % of an idle system, and two of them 47 % each."""
    shares = []
    for messages in (1, 2):
        workers = pool(1000, max_concurrency=1, scale=10)
        of = [Concurrency(SpoolId(number)) for number in range(messages)]
        has_grown = True
        while has_grown:
            has_grown = False
            for one in of:
                if workers.has_worker and workers.allows(one):
                    workers.opened()
                    one.add(object())
                    has_grown = True
        shares.append([len(one.workers) for one in of])
    assert shares[0] == [910]  # 10 x (1000 - 910) = 900 < 910
    assert sorted(shares[1]) == [476, 477]


def test_a_message_exceeds_its_share_if_it_would_not_get_back_the_worker_that_it_gives_up() -> None:
    workers = pool(100, max_concurrency=1, scale=3, is_open=96)
    assert [workers.exceeds(concurrency(count)) for count in (12, 15, 16)] == [False, False, True]
    workers.left()
    assert [workers.exceeds(concurrency(count)) for count in (18, 19)] == [False, True]
    many = pool(100, max_concurrency=20, scale=1, is_open=100)
    assert [many.exceeds(concurrency(count)) for count in (19, 20)] == [False, True]


def test_a_message_with_one_job_may_always_go() -> None:
    assert pool(1, is_open=1).allows(None)


def test_idle_connections_are_free_workers() -> None:
    world = World(ScheduleLimits(max_connections=2))
    workers, host = world.pool, world.unused()
    assert (workers.free, workers.has_worker, workers.is_full) == (2, True, False)
    one, _ = world.active(host), world.active(host)
    assert (workers.free, workers.has_worker, workers.is_full) == (0, False, True)
    world.rest(one)
    assert (workers.free, workers.has_worker, workers.is_full) == (1, True, True)
    world.leave(one)
    assert (workers.free, workers.has_worker, workers.is_full) == (0, False, True)
    world.close(one)
    assert (workers.free, workers.has_worker, workers.is_full) == (1, True, False)


def test_no_worker_is_free_while_there_are_more_than_there_may_be() -> None:
    assert (pool(2, is_open=5).free, pool(2, is_open=5).has_worker) == (0, False)
    assert pool(NO_LIMIT, is_open=5).has_worker


def test_a_worker_counts_once_whatever_the_number_of_its_jobs() -> None:
    message = Concurrency(SpoolId(1))
    one, other = object(), object()
    for worker in (one, one, other):
        message.add(worker)
    assert len(message.workers) == 2
    assert not message.remove(one)
    assert len(message.workers) == 2
    assert message.remove(one)
    assert message.remove(other)
    assert not message.workers
