"""The schedule: a test for each of its rules."""

from __future__ import annotations

import math

import pytest

from mailismus.deliver.routes.route import HOST_NONE, NextHop
from mailismus.deliver.schedule.destdb import Deaths, HostFailure
from mailismus.deliver.schedule.handing_out import TURN_S
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.schedule.schedule import CLOSING_S, PATIENCE_S
from mailismus.mail.ids import SpoolId
from tests.deliver.harness import deliver_settings
from tests.deliver.schedule.desk import LABEL, NONE_FOUND, Desk
from tests.deliver.schedule.jobs import HOP, OTHER_HOP
from tests.deliver.schedule.world import REFUSED

TWO = (("192.0.2.1", "192.0.2.2"),)
PRIMARY_AND_SECONDARY = (("192.0.2.1",), ("192.0.2.2",))


def limits(max_connections: int = 100, max_concurrency: int = 100, scale: int = 1, backlog: int = 3) -> ScheduleLimits:
    return ScheduleLimits(max_connections, 100, max_concurrency, scale, backlog)


# ---------------------------------------------------------------------- connections


def test_the_first_job_makes_a_connection_and_the_next_ones_queue_up_to_the_backlog() -> None:
    desk = Desk()
    jobs = [desk.add(message) for message in range(4)]
    first, second = desk.opened
    assert list(first.queue) == jobs[:3]
    assert list(second.queue) == jobs[3:]


def test_a_session_that_stands_begins_its_jobs_in_order_and_becomes_idle() -> None:
    desk = Desk()
    jobs = [desk.add(message) for message in range(3)]
    (connection,) = desk.opened
    desk.stand(connection)
    for one in jobs:
        assert desk.begun(connection) == [one]
        desk.deliver(connection)
    assert connection.is_idle
    assert desk.schedule.pool.idle == {connection: None}
    later = desk.add()
    assert desk.begun(connection) == [later]
    assert not desk.schedule.pool.idle
    assert len(desk.opened) == 1


def test_jobs_of_several_domains_ride_on_one_connection_of_their_host() -> None:
    desk = Desk()
    desk.hosts_of[OTHER_HOP] = desk.hosts_of[HOP]
    jobs = [desk.add(1), desk.add(2, next_hop=OTHER_HOP)]
    (connection,) = desk.opened
    assert list(connection.queue) == jobs


def test_a_connection_without_jobs_takes_over_one_that_waits_for_another_of_its_host() -> None:
    desk = Desk(limits(backlog=1))
    quick_job, slow_job = desk.add(1), desk.add(2)
    quick, slow = desk.opened
    desk.schedule.limits.backlog = 3
    desk.destdb.relist()
    desk.stand(slow)
    late = desk.add(3)
    assert (desk.begun(slow), list(slow.queue)) == ([slow_job], [late])
    desk.stand(quick)
    assert desk.begun(quick) == [quick_job]
    desk.deliver(quick)
    assert desk.begun(quick) == [late]
    assert not slow.queue
    assert late.concurrency is not None
    assert list(late.concurrency.workers) == [quick]


def test_a_connection_without_jobs_relieves_the_most_crowded_one_first() -> None:
    desk = Desk(limits(max_connections=3, backlog=1))
    for message in range(9):
        desk.add(message)
    for connection in desk.opened:
        desk.stand(connection)
    assert [len(connection.queue) for connection in desk.opened] == [2, 2, 2]
    oldest, middle, newest = desk.opened
    for _ in range(3):
        desk.deliver(newest)
    assert [len(connection.queue) for connection in desk.opened] == [1, 2, 0]
    desk.deliver(newest)
    assert [len(connection.queue) for connection in desk.opened] == [1, 1, 0]
    assert not oldest.is_idle
    assert not middle.is_idle


def test_the_last_idle_worker_is_ended_for_who_needs_one_and_that_which_is_idle_longest() -> None:
    desk = Desk(limits(max_connections=2), levels=TWO)
    desk.hosts_of[OTHER_HOP] = (("198.51.100.1",),)
    for message in range(4):
        desk.add(message)
    longest, latest = desk.opened[1], desk.opened[0]
    desk.stand(longest)
    desk.deliver(longest)
    desk.stand(latest)
    for _ in range(3):
        desk.deliver(latest)
    assert list(desk.schedule.pool.idle) == [longest, latest]
    waiting = desk.add(9, next_hop=OTHER_HOP)
    assert longest.is_leaving
    assert not latest.is_leaving
    assert list(desk.schedule.line) == [waiting]
    desk.serve()
    assert not latest.is_leaving  # one worker is enough for one job
    desk.close(longest)
    desk.serve()
    assert list(desk.opened[-1].queue) == [waiting]


def test_a_worker_is_free_when_its_connection_is_closed_and_not_before() -> None:
    desk = Desk(limits(max_connections=1))
    desk.hosts_of[OTHER_HOP] = (("198.51.100.1",),)
    desk.add(1)
    (only,) = desk.opened
    waiting = desk.add(2, next_hop=OTHER_HOP)
    desk.stand(only)
    desk.deliver(only)
    desk.serve()
    assert only.is_leaving
    assert len(desk.opened) == 1
    desk.close(only)
    desk.serve()
    assert list(desk.opened[1].queue) == [waiting]


def test_the_first_allowed_job_of_the_line_gets_the_free_worker() -> None:
    desk = Desk(limits(max_connections=2, max_concurrency=1, scale=1))
    hops = [HOP._replace(host=f"d{number}.example") for number in range(4)]
    for number, hop in enumerate(hops):
        desk.hosts_of[hop] = ((f"198.51.100.{number}",),)
    desk.add(1, next_hop=hops[0])
    desk.add(2, next_hop=hops[1])
    held, free = desk.add(1, next_hop=hops[2]), desk.add(3, b"b", next_hop=hops[3])
    assert list(desk.schedule.line) == [held, free]
    first, second = desk.opened
    desk.stand(second)
    desk.deliver(second)
    desk.serve()
    desk.close(second)
    desk.serve()
    assert list(desk.opened[2].queue) == [free]
    assert list(desk.schedule.line) == [held]
    desk.stand(first)
    desk.deliver(first)
    desk.serve()
    desk.close(first)
    desk.serve()
    assert list(desk.opened[3].queue) == [held]


def fill(desk: Desk, message: int, count: int, jobs: int = 1) -> list[Connection]:
    """Add jobs of a message for so many next hops of its own, as many for each. Return their connections."""
    before = len(desk.opened)
    for number in range(count):
        hop = NextHop(f"h{number}.m{message}.example", 25)
        desk.hosts_of[hop] = ((f"192.0.{message}.{number}",),)
        for _ in range(jobs):
            desk.add(message, b"%d" % message, next_hop=hop)
    made = desk.opened[before:]
    for connection in made:
        desk.stand(connection)
    return made


def workers_of(desk: Desk, message: int) -> dict[object, int]:
    """The workers of a message."""
    concurrency = desk.schedule.concurrency(SpoolId(message))
    desk.schedule.forget_concurrency(concurrency)
    return concurrency.workers


def test_a_message_with_more_than_its_share_yields_workers_until_the_shares_are_even() -> None:
    desk = Desk(ScheduleLimits(max_connections=12, max_messages=1, max_concurrency=1, scale=2))
    large = fill(desk, 1, 12, jobs=2)
    assert len(large) == 8
    assert not any(desk.schedule.must_yield(connection, desk.now) for connection in large)
    small = fill(desk, 2, 6, jobs=2)
    assert (len(small), desk.schedule.pool.free) == (3, 1)
    assert all(desk.schedule.must_yield(connection, desk.now) for connection in large)
    assert not any(desk.schedule.must_yield(connection, desk.now) for connection in small)
    desk.deliver(large[0])
    assert all(desk.schedule.must_yield(connection, desk.now) for connection in large[1:])
    desk.deliver(large[1])
    assert not any(desk.schedule.must_yield(connection, desk.now) for connection in large[2:])
    for connection in large[:2]:
        desk.close(connection)
        desk.serve()
    assert [len(workers_of(desk, message)) for message in (1, 2)] == [6, 4]
    assert not any(desk.schedule.must_yield(connection, desk.now) for connection in desk.sessions)


def test_a_message_yields_no_worker_if_none_with_fewer_waits() -> None:
    desk = Desk(ScheduleLimits(max_connections=12, max_concurrency=1, scale=2))
    large = fill(desk, 1, 12, jobs=2)
    desk.limits.become(ScheduleLimits(max_connections=8, max_concurrency=1, scale=2))
    assert desk.schedule.line
    assert not any(desk.schedule.must_yield(connection, desk.now) for connection in large)
    fill(desk, 2, 1)
    workers = workers_of(desk, 2)
    assert all(desk.schedule.must_yield(connection, desk.now) for connection in large)
    workers.update((object(), 1) for _ in range(7))
    assert not any(desk.schedule.must_yield(connection, desk.now) for connection in large)


def test_a_message_yields_to_one_of_one_job() -> None:
    desk = Desk(ScheduleLimits(max_connections=12, max_concurrency=1, scale=2))
    large = fill(desk, 1, 12, jobs=2)
    desk.limits.become(ScheduleLimits(max_connections=8, max_concurrency=1, scale=2))
    desk.add(3, b"3", next_hop=OTHER_HOP, is_sole=True)
    desk.hosts_of[OTHER_HOP] = (("192.0.2.99",),)
    desk.found(OTHER_HOP, desk.hosts_of[OTHER_HOP])
    assert all(desk.schedule.must_yield(connection, desk.now) for connection in large)


@pytest.mark.parametrize("is_for_both", [False, True])
def test_a_connection_with_messages_of_one_job_yields_after_its_turn_to_mail_for_another_host(is_for_both: bool) -> None:
    desk = Desk(ScheduleLimits(max_connections=1), levels=[["192.0.2.1"]])
    for message in range(4):
        desk.add(message, is_sole=True)
    (only,) = desk.opened
    desk.stand(only)
    desk.hosts_of[OTHER_HOP] = (("192.0.2.99",), ("192.0.2.1",)) if is_for_both else (("192.0.2.99",),)
    assert not desk.schedule.must_yield(only, desk.now + TURN_S)
    desk.add(9, b"b", next_hop=OTHER_HOP, is_sole=True)
    assert len(desk.schedule.line) == 1
    assert not desk.schedule.must_yield(only, desk.now + TURN_S - 0.1)
    assert desk.schedule.must_yield(only, desk.now + TURN_S) is not is_for_both


def test_a_message_waits_at_its_concurrency_and_goes_on_as_it_ends() -> None:
    desk = Desk(limits(max_connections=4, max_concurrency=2, scale=1, backlog=1), levels=[[f"192.0.2.{n}"] for n in (1,)])
    hops = [HOP._replace(host=f"d{number}.example") for number in range(5)]
    for number, hop in enumerate(hops):
        desk.hosts_of[hop] = ((f"198.51.100.{number}",),)
    for hop in hops:
        desk.add(1, next_hop=hop)
    assert len(desk.opened) == 2
    assert len(desk.schedule.line) == 3
    first = desk.opened[0]
    desk.stand(first)
    assert len(desk.opened) == 2
    desk.deliver(first)
    desk.serve()
    assert len(desk.opened) == 3
    assert len(desk.schedule.line) == 2


# ---------------------------------------------------------------------- ends


def test_jobs_of_a_connection_that_leaves_are_placed_anew_in_a_later_turn() -> None:
    desk = Desk()
    jobs = [desk.add(message) for message in range(3)]
    (connection,) = desk.opened
    desk.stand(connection)
    desk.schedule.leave(connection, desk.now)
    assert not connection.queue
    assert desk.schedule.has_work
    desk.serve()
    assert list(desk.opened[1].queue) == jobs[1:]
    desk.deliver(connection)
    desk.close(connection)
    assert desk.schedule.pool.open == 1


def crowded() -> tuple[Desk, Connection, Connection]:
    """A host at its limit of two connections, with five jobs each."""
    desk = Desk(limits(backlog=2), server_limit=2)
    for message in range(10):
        desk.add(message, is_sole=True)
    first, second = desk.opened
    assert [first.jobs, second.jobs] == [5, 5]
    desk.stand(first)
    desk.stand(second)
    return desk, first, second


def test_jobs_of_a_connection_that_ends_at_its_hosts_limit_wait_for_the_one_that_takes_its_place() -> None:
    desk, first, second = crowded()
    jobs = list(first.queue)
    desk.schedule.leave(first, desk.now)
    desk.serve()
    assert (second.jobs, desk.host().queued) == (5, 4)
    assert desk.schedule.has_work
    desk.deliver(first)
    desk.close(first)
    desk.serve()
    assert list(desk.opened[2].queue) == jobs
    assert second.jobs == 5


def test_they_wait_no_longer_than_a_reply_to_quit_takes() -> None:
    desk, first, second = crowded()
    desk.schedule.leave(first, desk.now)
    desk.serve()
    desk.now += CLOSING_S - 0.01
    desk.schedule.serve(desk.now)
    assert second.jobs == 5
    desk.now += 0.01
    desk.schedule.serve(desk.now)
    assert second.jobs == 9


@pytest.mark.parametrize("why", ["few", "room", "line", "host", "limit", "window"])
def test_they_are_placed_at_once_where_waiting_is_of_no_use(why: str) -> None:
    desk, first, second = crowded()
    if why == "few":  # as many as its backlog
        desk.go_on(first)
        desk.go_on(first)
    while second.jobs > 1 and why == "room":
        desk.deliver(second)
    if why == "line":
        desk.limits.max_connections = 2
        desk.hosts_of[OTHER_HOP] = (("192.0.2.99",),)
        desk.add(99, b"b", next_hop=OTHER_HOP)
    elif why == "host":  # it said how many it takes
        desk.host().endpoint.refuse(desk.now, 1, REFUSED)
    elif why == "limit":  # closing one leaves it at its limit
        desk.limits_of.use(deliver_settings(maxserverconnections=1))
    elif why == "window":
        first.mx_set.window.size = 1
    moved = list(first.queue)
    desk.schedule.leave(first, desk.now)
    desk.serve()
    assert not first.queue
    assert moved
    assert set(moved) <= {*second.queue, *desk.begun(second)}


def test_they_are_placed_when_another_connection_has_become_idle() -> None:
    desk, first, second = crowded()
    for _ in range(3):
        desk.deliver(second)
    desk.schedule.leave(first, desk.now)
    desk.serve()
    assert second.jobs == desk.limits.backlog
    for _ in range(2):
        desk.deliver(second)
    assert second.is_idle
    desk.serve()
    assert second.jobs == 4


def test_jobs_of_a_session_that_never_stood_do_not_wait() -> None:
    desk = Desk(limits(backlog=2), server_limit=2)
    for message in range(10):
        desk.add(message, is_sole=True)
    first, second = desk.opened
    desk.schedule.leave(first, desk.now)
    desk.serve()
    assert second.jobs == 10


def test_jobs_that_wait_so_are_drained_and_their_message_has_no_worker_there() -> None:
    desk = Desk(limits(backlog=2), server_limit=1)
    jobs = [desk.add(1) for _ in range(5)]
    (only,) = desk.opened
    desk.stand(only)
    desk.schedule.leave(only, desk.now)
    desk.serve()
    concurrency = jobs[0].concurrency
    assert concurrency is not None
    assert concurrency.workers == {only: 1}
    assert not desk.schedule.destinations[HOP].parked
    assert desk.schedule.drain() == jobs[1:]
    assert not desk.schedule.has_work


def test_a_crowded_connection_has_room_again_when_its_jobs_are_drained() -> None:
    desk, first, second = crowded()
    assert desk.host().newest_with_room() is None
    assert len(desk.schedule.drain()) == 8
    assert desk.host().newest_with_room() is second
    assert (first.jobs, second.jobs) == (1, 1)


def test_a_job_that_was_put_back_is_placed_anew() -> None:
    desk = Desk()
    one = desk.add()
    (connection,) = desk.opened
    desk.stand(connection)
    assert desk.put_back(connection) is one
    assert connection.is_idle
    desk.serve()
    assert desk.begun(connection) == [one]


def test_a_job_that_was_put_back_often_ends_an_idle_connection_where_a_limit_keeps_it_from_a_fresh_one() -> None:
    desk = Desk(server_limit=1)
    one = desk.add()
    (connection,) = desk.opened
    desk.stand(connection)
    for _ in range(2):
        desk.put_back(connection)
        desk.serve()
        if connection.is_leaving:
            break
    assert connection.is_leaving
    desk.close(connection)
    desk.serve()
    assert list(desk.opened[1].queue) == [one]


# ---------------------------------------------------------------------- dead hosts


def test_jobs_of_a_host_that_dies_go_to_the_next_one() -> None:
    desk = Desk(levels=PRIMARY_AND_SECONDARY)
    jobs = [desk.add(message) for message in range(4)]
    first, second = desk.opened
    assert first.host is second.host is desk.host()
    desk.fail(first)
    assert not second.is_listed
    assert not second.queue
    desk.serve()
    queued = [one for connection in desk.opened[2:] for one in connection.queue]
    assert queued == jobs
    assert all(connection.host is desk.host("192.0.2.2") for connection in desk.opened[2:])
    assert not desk.deferred


def test_a_job_whose_hosts_are_all_dead_was_tried_at_the_last_one() -> None:
    desk = Desk()
    one = desk.add()
    desk.fail(desk.opened[0])
    desk.serve()
    (deferred,) = desk.deferred
    assert (deferred.job, deferred.reply, deferred.label, deferred.known_for_s) == (one, REFUSED, LABEL, None)


def test_a_job_that_comes_while_all_hosts_are_dead_is_told_for_how_long() -> None:
    desk = Desk(levels=TWO, deaths=Deaths(20.0, 80.0, 100.0))
    desk.add()
    desk.fail(desk.opened[0])
    desk.serve()
    desk.now += 5.0
    desk.fail(desk.opened[1])
    desk.serve()
    desk.now += 5.0
    desk.add(2)
    assert (desk.deferred[-1].label, desk.deferred[-1].known_for_s) == (HOST_NONE, 10.0)
    assert len(desk.opened) == 2


def test_a_host_on_trial_has_one_connection_with_one_job_until_its_session_stands() -> None:
    desk = Desk()
    desk.add()
    desk.fail(desk.opened[0])
    desk.serve()
    desk.now += 20.0
    jobs = [desk.add(message) for message in range(10, 15)]
    trial = desk.opened[1]
    assert len(desk.opened) == 2
    assert list(trial.queue) == jobs[:1]
    desk.serve()
    assert list(desk.schedule.destinations[HOP].parked) == jobs[1:]
    desk.stand(trial)
    desk.serve()
    assert not desk.schedule.destinations[HOP].parked
    assert trial.jobs > 1


def test_a_trial_that_fails_defers_all_who_waited_for_it() -> None:
    desk = Desk()
    desk.add()
    desk.fail(desk.opened[0])
    desk.serve()
    desk.now += 20.0
    jobs = [desk.add(message) for message in range(10, 15)]
    desk.fail(desk.opened[1])
    desk.serve()
    assert sorted(id(one.job) for one in desk.deferred[1:]) == sorted(map(id, jobs))
    assert len(desk.opened) == 2
    assert not desk.schedule.has_work


def test_a_refusal_beside_sessions_that_stand_is_no_death() -> None:
    desk = Desk(limits(backlog=1))
    jobs = [desk.add(message) for message in range(3)]
    standing = desk.opened[0]
    desk.stand(standing)
    desk.fail(desk.opened[1], HostFailure.NO_SESSION)
    desk.serve()
    assert not desk.host().is_dead(desk.now)
    assert jobs[1] in standing.queue or jobs[1] in desk.opened[2].queue
    assert not desk.deferred


# ---------------------------------------------------------------------- limits


def test_at_a_limit_jobs_ride_and_without_a_connection_that_takes_them_they_wait() -> None:
    desk = Desk(server_limit=1)
    jobs = [desk.add(message) for message in range(6)]
    (only,) = desk.opened
    assert list(only.queue) == jobs
    desk.stand(only)
    desk.schedule.leave(only, desk.now)
    desk.now += CLOSING_S
    desk.serve()
    assert list(desk.schedule.destinations[HOP].parked) == jobs[1:]
    assert desk.schedule.has_work
    desk.deliver(only)
    desk.close(only)
    desk.serve()
    assert list(desk.opened[1].queue) == jobs[1:]


def test_a_limit_that_grows_spreads_a_crowd() -> None:
    desk = Desk(window=1)
    for message in range(9):
        desk.add(message)
    (only,) = desk.opened
    assert only.jobs == 9
    only.mx_set.window.size = 5  # and no more connections than the backlog asks for
    desk.schedule.grown()
    desk.serve()
    assert sorted(connection.jobs for connection in desk.opened) == [3, 3, 3]


def test_a_crowd_is_left_by_its_last_job_where_its_first_one_has_no_other_host() -> None:
    desk = Desk(server_limit=1)
    desk.hosts_of[OTHER_HOP] = (("192.0.2.1", "192.0.2.2"),)
    desk.add(1)
    moved = desk.add(2, next_hop=OTHER_HOP)
    for message in (3, 4):
        desk.add(message, is_sole=True)  # they go before every second job of messages with several
    (only,) = desk.opened
    assert [job is moved for job in only.queue] == [False, False, False, True]
    desk.wants_service = True
    desk.serve()
    assert [[job is moved for job in connection.queue] for connection in desk.opened] == [[False, False, False], [True]]


def test_a_job_does_not_leave_a_crowd_for_one_as_large() -> None:
    desk = Desk(server_limit=2)
    for message in range(9):
        desk.add(message)
    assert sorted(connection.jobs for connection in desk.opened) == [4, 5]
    desk.wants_service = True
    desk.serve(2)
    assert sorted(connection.jobs for connection in desk.opened) == [4, 5]


def test_parked_jobs_go_first_on_a_connection_that_asks() -> None:
    desk = Desk(server_limit=1)
    desk.add(1)
    (only,) = desk.opened
    desk.stand(only)
    desk.schedule.leave(only, desk.now)
    parked = [desk.add(message) for message in (2, 3)]
    assert list(desk.schedule.destinations[HOP].parked) == parked
    desk.deliver(only)
    desk.close(only)
    desk.serve()
    desk.stand(desk.opened[1])
    assert desk.begun(desk.opened[1]) == parked[:1]


def test_a_silent_set_gets_one_connection_more_for_jobs_that_wait_there() -> None:
    desk = Desk(window=1)
    jobs = [desk.add(message) for message in range(4)]
    (only,) = desk.opened
    desk.stand(only)
    desk.now += PATIENCE_S
    desk.schedule.relieve(only, desk.now)
    assert len(desk.opened) == 2
    assert list(desk.opened[1].queue) == jobs[1:]
    assert desk.begun(only) == jobs[:1]
    assert only.is_listed


def test_jobs_leave_a_silent_connection_for_one_with_room() -> None:
    desk = Desk(limits(backlog=2))
    jobs = [desk.add(message) for message in range(3)]
    silent, other = desk.opened
    desk.stand(silent)
    desk.stand(other)
    assert list(silent.queue) == [jobs[1]]
    desk.schedule.relieve(silent, desk.now)
    assert (list(silent.queue), list(other.queue)) == ([], [jobs[1]])
    assert silent.is_listed


def test_a_connection_without_jobs_takes_over_one_from_a_connection_that_has_just_its_backlog() -> None:
    desk = Desk(limits(backlog=2))
    jobs = [desk.add(message) for message in range(3)]
    full, other = desk.opened
    desk.stand(full)
    desk.stand(other)
    assert list(full.queue) == [jobs[1]]
    desk.deliver(other)
    assert desk.begun(other) == [jobs[1]]


def test_an_idle_connection_that_asks_again_and_takes_over_a_job_is_idle_no_more() -> None:
    desk = Desk(limits(backlog=2))
    for message in range(3):
        desk.add(message, is_sole=True)
    one, other = desk.opened
    for connection in (one, other):
        desk.stand(connection)
    while desk.begun(one) or desk.begun(other):
        desk.deliver(one if desk.begun(one) else other)
    jobs = [desk.add(message, b"b", is_sole=True) for message in (4, 5)]
    busy, idle = (one, other) if desk.begun(one) else (other, one)
    pool = desk.schedule.pool
    assert (list(busy.queue), list(pool.idle)) == ([jobs[1]], [idle])
    desk.go_on(idle)  # the queue allows transactions again
    assert desk.begun(idle) == [jobs[1]]
    assert not pool.idle
    assert pool.of_sender(b"b") == 2
    desk.deliver(idle)
    desk.schedule.leave(idle, desk.now)
    assert not pool.idle


def test_while_connections_are_paused_none_is_made_and_then_the_line_goes_on() -> None:
    desk = Desk()
    desk.schedule.pause(desk.now + 1.0)
    one = desk.add()
    desk.serve()
    assert not desk.opened
    assert list(desk.schedule.line) == [one]
    desk.now += 1.0
    desk.schedule.serve(desk.now)
    assert list(desk.opened[0].queue) == [one]


# ---------------------------------------------------------------------- look-ups


def test_jobs_wait_for_their_hosts_and_are_placed_in_order() -> None:
    desk = Desk()
    jobs = [desk.add(message, next_hop=OTHER_HOP) for message in range(3)]
    assert not desk.opened
    assert desk.schedule.has_work
    desk.found(OTHER_HOP, (("192.0.2.1",),))
    assert list(desk.opened[0].queue) == jobs
    assert not desk.schedule.has_work


def test_jobs_without_hosts_are_deferred_by_the_owner() -> None:
    desk = Desk()
    desk.hosts_of[OTHER_HOP] = ()
    one = desk.add(next_hop=OTHER_HOP)
    (deferred,) = desk.deferred
    assert (deferred.job, deferred.reply, deferred.known_for_s) == (one, NONE_FOUND.reply, math.inf)


def test_while_hosts_are_looked_up_again_sessions_that_stand_serve() -> None:
    desk = Desk()
    desk.add()
    desk.stand(desk.opened[0])
    desk.now += desk.located_s
    del desk.hosts_of[HOP]
    one = desk.add(2)
    assert list(desk.opened[0].queue) == [one]
    assert not desk.schedule.destinations[HOP].unlocated


# ---------------------------------------------------------------------- all jobs


def test_drain_takes_every_job_that_has_not_begun() -> None:
    desk = Desk(limits(max_connections=2, backlog=1), server_limit=1)
    desk.hosts_of[OTHER_HOP] = (("198.51.100.1",),)
    third, fourth = HOP._replace(host="third.example"), HOP._replace(host="fourth.example")
    desk.hosts_of[third] = (("198.51.100.3",),)
    jobs = [desk.add(1), desk.add(2), desk.add(3, next_hop=OTHER_HOP), desk.add(4, next_hop=third)]
    jobs.append(desk.add(5, next_hop=fourth))
    first, second = desk.opened
    desk.stand(first)
    desk.schedule.leave(second, desk.now)
    drained = desk.schedule.drain()
    assert sorted(map(id, drained)) == sorted(map(id, jobs[1:]))
    desk.give_back(drained)
    assert not desk.schedule.has_work
    assert desk.begun(first) == jobs[:1]


def test_a_next_hop_without_jobs_is_forgotten_when_its_hosts_would_be_looked_up_again() -> None:
    desk = Desk()
    desk.add()
    desk.stand(desk.opened[0])
    desk.deliver(desk.opened[0])
    assert desk.schedule.known.has_unused
    desk.schedule.collect(desk.now + desk.located_s - 0.1)
    assert HOP in desk.schedule.destinations
    desk.schedule.collect(desk.now + desk.located_s)
    assert not desk.schedule.destinations
    assert not desk.schedule.known.has_unused
    assert len(desk.limits_of) == 1  # a window is remembered for longer


def test_a_next_hop_with_jobs_or_a_look_up_is_not_forgotten() -> None:
    desk = Desk()
    desk.add(1)
    desk.add(2, next_hop=OTHER_HOP)
    drained = desk.schedule.drain()
    assert len(drained) == 2
    desk.give_back(drained)
    assert desk.add(3).next_hop == HOP
    desk.schedule.collect(desk.now + 1000.0)
    assert set(desk.schedule.destinations) >= {HOP}


def test_a_connection_counts_for_the_sender_of_the_small_message_for_which_it_is_used() -> None:
    desk = Desk()
    desk.hosts_of[OTHER_HOP] = (("198.51.100.1",),)
    of_sender = desk.schedule.pool.of_sender
    desk.add(1, b"a", is_sole=True)
    desk.add(2, b"b", is_sole=True)  # rides on it
    assert (of_sender(b"a"), of_sender(b"b")) == (1, 0)
    (only,) = desk.opened
    desk.stand(only)
    desk.deliver(only)
    desk.deliver(only)
    assert only.is_idle
    assert of_sender(b"a") == 0
    desk.add(3, b"b", is_sole=True)
    assert (of_sender(b"a"), of_sender(b"b")) == (0, 1)
    desk.deliver(only)
    desk.add(4, b"b")
    assert of_sender(b"b") == 0
