"""The pool of workers and the concurrency of a message."""

from __future__ import annotations

from mailismus.deliver.jobs.concurrency import Concurrency, WorkerShare
from mailismus.deliver.schedule.limits import NO_LIMIT, ScheduleLimits
from mailismus.deliver.schedule.pool import KEPT, MOST_KEPT, PARTS, Pool
from mailismus.deliver.schedule.verification import SHARE
from mailismus.mail.ids import SpoolId
from tests.deliver.schedule.jobs import concurrency, job
from tests.deliver.schedule.world import World


def pool(max_connections: int, max_concurrency: int = 1, scale: int = 1, is_open: int = 0) -> Pool:
    made = Pool(ScheduleLimits(max_connections, max_concurrency=max_concurrency, scale=scale))
    for _ in range(is_open):
        made.opened()
    return made


def most(workers: Pool) -> int:
    """The workers that a message gets if none becomes free."""
    return next(count for count in range(1000) if not workers.allows_message(concurrency(count)))


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
                if workers.has_worker and workers.allows_message(one):
                    workers.opened()
                    one.add(object())
                    has_grown = True
        shares.append([len(one.workers) for one in of])
    assert shares[0] == [910]  # 10 x (1000 - 910) = 900 < 910
    assert sorted(shares[1]) == [476, 477]


def test_a_message_exceeds_its_share_if_it_would_not_get_back_the_worker_that_it_gives_up() -> None:
    workers = pool(100, max_concurrency=1, scale=3, is_open=96)
    assert [workers.exceeds(concurrency(count)) for count in (12, 15, 16)] == [False, False, True]
    world = World()
    workers.left(world.active(world.unused()))
    assert [workers.exceeds(concurrency(count)) for count in (18, 19)] == [False, True]
    many = pool(100, max_concurrency=20, scale=1, is_open=100)
    assert [many.exceeds(concurrency(count)) for count in (19, 20)] == [False, True]


def test_a_message_with_one_job_may_always_go() -> None:
    assert pool(1, is_open=1).allows_message(None)


# ---------------------------------------------------------------------- senders of small messages


def grown(limits: ScheduleLimits, *senders: bytes) -> list[int]:
    """The workers that senders get for messages of one recipient if none becomes free, each to a host of its own."""
    world = World(limits)
    has_grown = True
    while has_grown:
        has_grown = False
        for sender in senders:
            if world.pool.has_worker and world.pool.allows_job(job(sender=sender)):
                world.charged(world.unused(), sender)
                has_grown = True
    return [world.pool.of_sender(sender) for sender in senders]


def test_the_small_messages_of_a_sender_have_the_share_of_one_message() -> None:
    assert grown(ScheduleLimits(max_connections=1000, scale=10), b"a") == [910]
    assert sorted(grown(ScheduleLimits(max_connections=1000, scale=10), b"a", b"b")) == [476, 477]
    assert grown(ScheduleLimits(max_connections=12, max_concurrency=1, scale=1), b"a") == [6]  # strict: 6 are free


def test_senders_leave_some_workers_to_those_with_few() -> None:
    """A fifth of the workers, at most 20; with a quarter of those a sender has few, and always with none."""
    assert grown(ScheduleLimits(max_connections=20), b"a") == [20 - 20 // KEPT]
    assert sum(grown(ScheduleLimits(max_connections=20), b"a", b"b", b"c")) == 16
    many = grown(ScheduleLimits(max_connections=500), *(b"%d" % number for number in range(20)))
    assert sum(many) == 500 - MOST_KEPT
    world = World(ScheduleLimits(max_connections=500))
    for _ in range(500 - MOST_KEPT):
        world.charged(world.unused(), b"big")
    for _ in range(MOST_KEPT // PARTS):
        assert world.pool.allows_job(job(sender=b"new"))
        world.charged(world.unused(), b"new")
    assert not world.pool.allows_job(job(sender=b"new"))
    assert world.pool.allows_job(job(sender=b"other"))
    few = World(ScheduleLimits(max_connections=6))
    few.charged(few.unused(), b"one")
    for _ in range(4):
        few.charged(few.unused(), b"big")
    assert few.pool.allows_job(job(sender=b"new"))
    assert not few.pool.allows_job(job(sender=b"one"))


def test_a_sender_may_have_the_workers_that_a_message_always_has_while_others_find_some() -> None:
    world = World(ScheduleLimits(max_connections=12, max_concurrency=5, scale=1))
    for _ in range(4):
        world.active(world.unused())
    for number in range(5):
        assert world.pool.allows_job(job(sender=b"a")), number
        world.charged(world.unused())
    assert not world.pool.allows_job(job(sender=b"a"))  # 5 of them, 3 free
    world.active(world.unused())
    assert not world.pool.allows_job(job(concurrency=concurrency(6)))
    assert world.pool.allows_job(job(sender=b"a", concurrency=concurrency(1)))


def test_messages_that_may_exceed_their_share_do_not_count_for_their_sender() -> None:
    world = World(ScheduleLimits(max_connections=10, max_concurrency=3))
    small, big = job(concurrency=concurrency(0), whole=3), job(concurrency=concurrency(0), whole=4)
    asked = job(concurrency=Concurrency(SpoolId(9), SHARE), whole=1)
    assert [world.pool.is_small(one) for one in (job(), small, big, asked)] == [True, True, False, False]
    for _ in range(8):
        world.pool.charge(world.active(world.unused()), big)
    assert world.pool.of_sender(b"a@x.example") == 0
    assert world.pool.allows_job(big)
    for _ in range(2):
        world.charged(world.unused(), b"a@x.example")
    assert world.pool.allows_job(big)
    assert not world.pool.allows_job(small)
    assert not world.pool.allows_job(job(concurrency=concurrency(3), whole=4))


def test_a_connection_is_its_senders_until_it_is_idle_or_leaves() -> None:
    world = World()
    one, other = world.charged(world.unused()), world.charged(world.unused())
    assert world.pool.of_sender(b"a") == 2
    world.rest(one)
    assert world.pool.of_sender(b"a") == 1
    world.leave(one)
    world.leave(other)
    assert not world.pool.by_sender
    world.charged(world.unused())
    assert world.pool.of_sender(b"a") == 1


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
