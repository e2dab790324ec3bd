"""The choice: a test for each rule of its order."""

from __future__ import annotations

import pytest

from mailismus.deliver.schedule.choice import FRESH_AFTER, Wait
from mailismus.deliver.schedule.destdb import HostFailure
from mailismus.deliver.schedule.limits import ScheduleLimits
from tests.deliver.schedule.world import DEATH_S, NOW, REFUSED, World, first, last, window


def small(max_connections: int = 4, max_concurrency: int = 2, scale: int = 1, backlog: int = 3) -> World:
    return World(ScheduleLimits(max_connections, 100, max_concurrency, scale, backlog))


# ---------------------------------------------------------------------- connections with room


def test_the_newest_connection_with_room_over_all_hosts_gets_the_job() -> None:
    world = World()
    one, other = world.unused(), world.unused()
    world.active(one, 1)
    newest = world.active(other, 1)
    assert world.choose([one, other], workers=1000) is newest
    newer = world.active(one, 2)
    assert world.choose([one, other]) is world.choose([other, one]) is newer


def test_a_connection_has_room_below_the_backlog() -> None:
    world = small(backlog=3)
    host = world.unused()
    older = world.active(host, 0)
    newest = world.active(host, 2)
    assert world.choose([host]) is newest
    world.fill(newest, 1)
    assert world.choose([host]) is older
    world.fill(older, 3)
    assert world.choose([host]) is host


def test_a_connection_with_room_gets_the_job_before_an_unused_host_and_an_idle_connection() -> None:
    world = World()
    host, unused = world.unused(), world.unused()
    connection = world.active(host, 2)
    world.idle(host)
    assert world.choose([unused, host]) is connection


def test_a_connection_that_is_being_made_is_active() -> None:
    world = World()
    host = world.unused()
    world.active(host, 1)
    made = world.active(host, 1, is_standing=False)
    assert world.choose([host]) is made


def test_one_that_leaves_gets_nothing() -> None:
    world = World()
    host = world.unused()
    world.leave(world.active(host))
    assert world.choose([host]) is host


# ---------------------------------------------------------------------- a message's share of the workers


def test_a_message_below_its_concurrency_may_have_a_worker_and_at_it_not() -> None:
    world = small(max_connections=4, max_concurrency=2)
    host = world.unused()
    connections = [world.active(host, 3) for _ in range(3)]
    spare = world.unused()
    assert world.pool.free == 1
    assert world.choose([host, spare], workers=1) is spare
    assert world.choose([host, spare], workers=2) is connections[-1]


def test_beyond_its_concurrency_it_may_have_less_than_scale_times_the_free_workers() -> None:
    world = small(max_connections=7, max_concurrency=1, scale=2)
    host, spare = world.unused(), world.unused()
    connections = [world.active(host, 3) for _ in range(5)]
    assert world.pool.free == 2
    assert world.choose([host, spare], workers=3) is spare
    assert world.choose([host, spare], workers=4) is connections[-1]


def test_an_idle_connection_is_a_free_worker() -> None:
    world = small(max_connections=4, max_concurrency=1)
    host, spare, elsewhere = world.unused(), world.unused(), world.unused()
    full = [world.active(host, 3) for _ in range(3)]
    kept = world.active(elsewhere)
    assert world.choose([host, spare], workers=1) is full[-1]
    world.rest(kept)
    assert world.choose([host, spare], workers=1) is full[-1]
    assert world.choose([host, spare], workers=0) is spare
    world.close(full[0])
    assert world.choose([host, spare], workers=1) is spare


def test_a_message_never_has_more_than_half_of_the_workers_for_sure() -> None:
    world = small(max_connections=4, max_concurrency=20)
    host, elsewhere = world.unused(), world.unused()
    for _ in range(4):
        world.active(elsewhere, 3)
    idle = world.idle(host)
    assert world.pool.free == 1  # one more than there may be: the limit was lowered
    assert world.choose([host], workers=1) is idle
    assert world.choose([host], workers=2) is Wait.WORKER


def test_a_pool_of_one_worker_serves_each_message() -> None:
    world = small(max_connections=1)
    host = world.unused()
    assert world.choose([host]) is host
    idle = world.idle(host)
    assert world.choose([host]) is idle


def test_without_its_share_and_an_active_connection_a_job_waits_for_a_worker_though_one_is_idle() -> None:
    world = small(max_connections=4, max_concurrency=1)
    host = world.unused()
    world.idle(host)
    for _ in range(3):
        world.active(world.unused(), 3)
    assert world.choose([host], workers=1) is Wait.WORKER
    assert world.choose([host, world.unused()], workers=1) is Wait.WORKER


# ---------------------------------------------------------------------- free rides


def test_a_free_ride_goes_to_the_newest_with_fewer_jobs_than_the_newest_one() -> None:
    world = small()
    one, other = world.unused(), world.unused()
    world.active(one, 3)
    fewer = world.active(other, 4)
    world.active(one, 5)
    newest = world.active(other, 5)
    assert world.choose([one, other], workers=99) is fewer
    world.fill(fewer, 1)
    oldest = world.choose([one, other], workers=99)
    assert oldest is not newest
    assert getattr(oldest, "jobs", 0) == 3


def test_of_several_with_as_many_fewer_jobs_a_free_ride_goes_to_the_newest() -> None:
    world = small()
    host = world.unused()
    world.active(host, 3)
    newer = world.active(host, 3)
    world.active(host, 5)
    assert world.choose([host], workers=99) is newer


def test_a_free_ride_goes_to_the_newest_if_all_have_as_many_or_more() -> None:
    world = small()
    host = world.unused()
    world.active(host, 5)
    world.active(host, 4)
    newest = world.active(host, 4)
    assert world.choose([host], workers=99) is newest


def test_the_newest_one_is_that_of_all_hosts() -> None:
    world = small()
    one, other = world.unused(), world.unused()
    world.active(one, 3)
    fewer = world.active(other, 4)
    world.active(other, 5)
    assert world.choose([one, other], workers=99) is fewer


def test_free_rides_are_spread_evenly() -> None:
    world = small()
    hosts = [world.unused(), world.unused()]
    connections = [world.active(hosts[number % 2], 3) for number in range(4)]
    for _ in range(40):
        ridden = world.choose(hosts, workers=99)
        assert ridden in connections
        world.fill(ridden, 1)
    assert [connection.jobs for connection in connections] == [13] * 4


def test_who_may_have_a_worker_has_a_free_ride_while_none_is_left() -> None:
    world = small(max_connections=2)
    host = world.unused()
    world.active(host, 4)
    newest = world.active(host, 4)
    assert world.choose([host, world.unused()], workers=0) is newest
    assert world.choose([world.unused()], workers=0) is Wait.WORKER


# ---------------------------------------------------------------------- idle connections


def test_the_connection_that_became_idle_last_is_used_before_another_is_made() -> None:
    world = World()
    one, other, unused = world.unused(), world.unused(), world.unused()
    older = world.active(one)
    world.idle(other)
    world.idle(one)
    world.rest(older)
    assert world.choose([unused, other, one]) is older
    world.wake(older)
    world.fill(older, 2)
    latest = world.choose([unused, other, one])
    assert latest is not older
    assert getattr(latest, "host", None) is one


def test_an_idle_connection_is_used_while_no_worker_is_left() -> None:
    world = small(max_connections=2)
    host = world.unused()
    world.active(host, 3)
    idle = world.idle(host)
    assert world.choose([host, world.unused()], workers=0) is idle


def test_an_idle_connection_elsewhere_makes_room_for_a_new_one() -> None:
    world = small(max_connections=1)
    world.idle(world.unused())
    wanted = world.unused()
    assert world.choose([wanted], workers=0) is wanted


# ---------------------------------------------------------------------- hosts


def test_an_unused_host_is_chosen_at_random_before_all_others() -> None:
    world = World()
    busy, closed, due = world.unused(), world.closed(1.0), world.due()
    world.active(busy, 3)
    unused = [world.unused(), world.unused(), world.unused()]
    hosts = [busy, closed, due, *unused]
    assert world.choose(hosts, pick=first) is unused[0]
    assert world.choose(hosts, pick=last) is unused[-1]


def test_of_closed_hosts_the_one_whose_connection_was_made_first_is_chosen() -> None:
    world = World()
    busy, due = world.unused(), world.due()
    world.active(busy, 3)
    newer, oldest, newest = world.closed(5.0, closed_at=50.0), world.closed(4.0, closed_at=90.0), world.closed(6.0, 40.0)
    for pick in (first, last):
        assert world.choose([busy, due, newer, oldest, newest], pick=pick) is oldest


def test_hosts_are_used_in_turn() -> None:
    world = World()
    hosts = [world.closed(3.0), world.closed(1.0), world.closed(2.0)]
    order = []
    for step in range(6):
        host = world.choose(hosts)
        order.append(hosts.index(host))  # type: ignore[arg-type]  # a host
        world.close(world.active(hosts[order[-1]], made_at=10.0 + step))
    assert order == [1, 2, 0, 1, 2, 0]


def test_a_host_that_is_due_is_tried_last_at_random() -> None:
    world = World()
    busy, closed = world.unused(), world.closed(1.0)
    world.active(busy, 3)
    due = [world.due(), world.due(), world.dead(), world.due()]
    assert world.choose([busy, *due, closed]) is closed
    assert world.choose([busy, *due], pick=first) is due[0]
    assert world.choose([busy, *due], pick=last) is due[-1]


def test_a_host_that_is_due_is_tried_before_another_connection_to_one_that_works() -> None:
    world = World()
    busy, due = world.unused(), world.unused()
    world.active(busy, 3)
    for connection in [world.active(due, is_standing=False) for _ in range(2)]:  # not closed yet
        world.leave(connection)
        world.destdb.note_failure(connection, REFUSED, HostFailure.NO_CONNECTION, NOW - DEATH_S)
    assert world.choose([busy, due]) is due


def test_a_host_that_died_is_due_when_its_time_is_over_and_not_before() -> None:
    world = World()
    host = world.dead()
    assert world.choose([host], now=NOW + DEATH_S - 0.001) is Wait.NO_HOST
    assert world.choose([host], now=NOW + DEATH_S) is host


def test_another_connection_goes_to_a_random_host_with_the_fewest() -> None:
    world = World()
    hosts = [world.unused() for _ in range(4)]
    for host, count in zip(hosts, (2, 1, 1, 3), strict=True):
        for _ in range(count):
            world.active(host, 3)
    assert world.choose(hosts, pick=first) is hosts[1]
    assert world.choose(hosts, pick=last) is hosts[2]


def test_a_connection_in_quit_counts_for_its_host() -> None:
    world = World()
    one, other = world.unused(), world.unused()
    world.active(other, 3)
    world.leave(world.active(one))
    world.active(one, 3)
    assert world.choose([one, other]) is other


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize("limit", ["server", "window", "set"])
def test_at_every_limit_a_job_has_a_free_ride_or_waits(limit: str) -> None:
    world = World()
    host, secondary = world.unused(), world.unused()
    newest = [world.active(host, 3) for _ in range(2)][-1]
    assert world.choose([host], [secondary]) is host
    if limit == "server":
        world.of.server_limit = 2
    elif limit == "window":
        host.endpoint.window = window(2)
    else:
        world.mx_set.window.size = 2
    assert world.choose([host], [secondary]) is newest
    world.leave(newest)
    world.leave(host.listed()[0])
    assert world.choose([host], [secondary]) is (host if limit == "set" else Wait.LIMIT)  # QUIT is no load of the set


def test_at_the_limit_of_the_only_host_free_rides_are_spread_as_everywhere() -> None:
    world = World()
    world.of.server_limit = 3
    host = world.unused()
    older, fewer, newest = (world.active(host, jobs) for jobs in (4, 4, 5))
    assert world.choose([host]) is fewer
    world.fill(fewer, 1)
    assert world.choose([host]) is older
    world.fill(older, 1)
    assert world.choose([host]) is newest


def test_at_the_limit_of_the_only_host_an_idle_connection_is_used_first() -> None:
    world = World()
    world.of.server_limit = 2
    host = world.unused()
    idle = world.idle(host)
    world.active(host, 3)
    assert world.choose([host]) is idle


@pytest.mark.parametrize("trouble", ["dead", "on trial"])
def test_a_connection_of_the_only_host_gets_nothing_while_that_does_not_work(trouble: str) -> None:
    world = World()
    host, secondary = world.unused(), world.unused()
    with_room = world.active(host, 1)
    assert world.choose([host], [secondary]) is with_room
    if trouble == "dead":
        host.endpoint.die(1, NOW, NOW + DEATH_S, REFUSED)
    else:
        host.try_with(world.active(host, is_standing=False))
    assert world.choose([host], [secondary]) is secondary


def test_a_limit_of_one_host_is_no_reason_against_another_of_the_same_preference() -> None:
    world = World()
    world.of.server_limit = 1
    full, other = world.unused(), world.due()
    world.active(full, 3)
    assert world.choose([full, other]) is other
    unused = world.unused()
    unused.endpoint.window = window(0)
    assert world.choose([full, unused, other]) is other


def test_no_limit_of_connections_to_a_host_is_none() -> None:
    world = World()
    host = world.unused()
    for _ in range(100):
        world.active(host, 3)
    assert world.of.server_limit is None
    assert world.choose([host]) is host


# ---------------------------------------------------------------------- preferences


def test_the_next_preference_is_used_only_if_no_host_of_the_best_works() -> None:
    world = World()
    dead, alive, secondary, tertiary = world.dead(), world.unused(), world.unused(), world.unused()
    world.active(secondary)
    assert world.choose([dead, alive], [secondary]) is alive
    assert world.choose([dead], [secondary]) is secondary.newest()
    assert world.choose([dead], [world.dead()], [tertiary]) is tertiary


def test_neither_a_share_nor_a_full_pool_is_a_reason_for_a_secondary() -> None:
    world = small(max_connections=2)
    primary, secondary = world.unused(), world.unused()
    world.active(secondary)
    world.active(secondary)
    assert world.choose([primary], [secondary], workers=0) is Wait.WORKER
    assert world.choose([primary], [secondary], workers=99) is Wait.WORKER


def test_a_primary_that_is_due_is_tried_before_a_secondary() -> None:
    world = World()
    due, secondary = world.due(), world.unused()
    world.active(secondary)
    assert world.choose([due], [secondary]) is due


def test_when_all_hosts_are_dead_there_is_none() -> None:
    world = World()
    assert world.choose([world.dead(), world.dead()], [world.dead()]) is Wait.NO_HOST


# ---------------------------------------------------------------------- trials


def test_a_trial_is_for_one_job_until_the_session_stands() -> None:
    world = World()
    host = world.due()
    trial = world.active(host, 1, is_standing=False)
    assert world.choose([host]) is Wait.TRIAL
    world.destdb.stand(trial, NOW)
    assert world.choose([host]) is trial


def test_others_use_the_next_preference_or_wait_for_the_trial() -> None:
    world = World()
    host, secondary = world.due(), world.unused()
    world.active(host, 1, is_standing=False)
    assert world.choose([host], [secondary]) is secondary
    assert world.choose([host, world.dead()], [world.dead()]) is Wait.TRIAL
    assert world.choose([world.dead()], [host]) is Wait.TRIAL
    other = world.unused()
    assert world.choose([host, other], [secondary]) is other


# ---------------------------------------------------------------------- jobs that were put back


def test_a_job_that_was_put_back_goes_over_a_connection_without_other_jobs() -> None:
    world = World()
    host, other = world.unused(), world.unused()
    world.idle(host)
    standing = world.active(host)
    world.active(host, 1, is_standing=False)
    assert world.choose([host], put_backs=FRESH_AFTER - 1) is not host
    assert world.choose([host, other], put_backs=FRESH_AFTER) is other
    empty = world.active(host, is_standing=False)
    newer = world.active(other, is_standing=False)
    assert world.choose([host, other], put_backs=FRESH_AFTER) is newer
    assert world.choose([host], put_backs=FRESH_AFTER) is empty
    assert not standing.jobs


def test_a_job_that_was_put_back_has_no_free_ride() -> None:
    world = small(max_connections=2)
    host = world.unused()
    world.active(host)
    world.of.server_limit = 1
    assert world.choose([host], put_backs=FRESH_AFTER) is Wait.LIMIT
    world.active(world.unused())
    assert world.choose([host], put_backs=FRESH_AFTER) is Wait.WORKER


def test_a_job_of_a_sender_with_his_share_has_a_free_ride_or_waits() -> None:
    world = World(ScheduleLimits(max_connections=20))
    for _ in range(16):
        world.charged(world.unused())
    host, full = world.unused(), world.unused()
    crowded = world.active(full, jobs=9)
    assert world.choose([host], sender=b"a") is Wait.WORKER
    assert world.choose([full], sender=b"a") is crowded
    assert world.choose([host], sender=b"b") is host


# ---------------------------------------------------------------------- few connections, and many


@pytest.mark.parametrize("looked_at", [0, 32])
def test_the_newest_connection_with_fewer_jobs_is_found_among_few_and_many(looked_at: int) -> None:
    world = World(ScheduleLimits(backlog=2, looked_at=looked_at))
    host = world.unused()
    old, newer = world.active(host, 3), world.active(host, 3)
    world.active(host, 4)
    world.active(host, 1)
    assert host.newest_below(4) is newer is not old
    assert host.newest_below(3) is None, "the one with room is no free ride"
    assert host.newest_below(2) is None


@pytest.mark.parametrize("looked_at", [0, 32])
def test_the_most_crowded_connection_is_found_among_few_and_many(looked_at: int) -> None:
    world = World(ScheduleLimits(backlog=2, looked_at=looked_at))
    host = world.unused()
    world.active(host, 2)
    assert host.newest_with_room() is None
    assert host.most_crowded() is None, "it has no more than the backlog"
    world.active(host, 3)
    oldest = world.active(host, 4)
    world.active(host, 4)
    assert host.most_crowded() is oldest


def test_a_job_without_a_connection_waits_for_a_worker_before_it_waits_for_a_limit() -> None:
    world = small(max_connections=2, max_concurrency=1, backlog=1)
    host, other = world.unused(), world.unused()
    world.of.server_limit = 1
    world.destdb.leave(world.active(host, 0))
    assert world.choose([host]) is Wait.LIMIT
    assert world.choose([host], workers=1) is Wait.WORKER, "its message has its share"
    world.active(other, 1)
    assert world.choose([host]) is Wait.WORKER, "no worker is free"
