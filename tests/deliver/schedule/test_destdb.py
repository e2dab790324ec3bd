"""The database of destinations: deaths, what is remembered, and for how long."""

from __future__ import annotations

import gc
import math

import pytest

from mailismus.deliver.limits.sets import MxSet
from mailismus.deliver.schedule.destdb import Deaths, DestDb, HostFailure
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from tests.deliver.known_hosts import fail, succeed
from tests.deliver.schedule.jobs import concurrency, job
from tests.deliver.schedule.world import REFUSED, window

ADDRESS = "192.0.2.1"
DEATHS = Deaths(300.0, 7200.0, 7200.0)
NO_CONNECTION, NO_SESSION = HostFailure.NO_CONNECTION, HostFailure.NO_SESSION


def destdb(deaths: Deaths = DEATHS, limit: int = 10_000) -> DestDb:
    return DestDb(ScheduleLimits(), deaths, limit)


def connect(hosts: DestDb, host: Host, now: float = 0.0, mx_set: MxSet | None = None) -> Connection:
    return hosts.connect(host, mx_set or MxSet((("mx",), 25), window(9), None), now)


def death_s(hosts: DestDb, now: float, kind: HostFailure = NO_CONNECTION) -> float:
    """For how long the host is dead after a failure now."""
    assert fail(hosts, ADDRESS, REFUSED, kind, now)
    return hosts.find(ADDRESS, 25).dead_until - now


def test_a_death_is_twice_as_long_after_each_failure_up_to_the_longest() -> None:
    hosts, now, found = destdb(), 0.0, []
    for _ in range(7):
        found.append(death_s(hosts, now))
        now += found[-1]
    assert found == [300.0, 600.0, 1200.0, 2400.0, 4800.0, 7200.0, 7200.0]


def test_a_host_that_refused_the_session_is_dead_for_the_first_time_again() -> None:
    hosts = destdb()
    assert [death_s(hosts, now, NO_SESSION) for now in (0.0, 300.0, 600.0)] == [300.0] * 3
    assert [death_s(hosts, 900.0), death_s(hosts, 1500.0, NO_SESSION)] == [600.0, 300.0]


def test_a_session_clears_all_failures() -> None:
    hosts = destdb()
    death_s(hosts, 0.0)
    death_s(hosts, 300.0)
    succeed(hosts, ADDRESS, 900.0)
    host = hosts.find(ADDRESS, 25)
    assert (host.failures, host.is_dead(900.0), hosts.remembered) == (0, False, 0)
    assert death_s(hosts, 901.0) == 300.0


def test_a_death_forgotten_is_no_failure_before_the_next() -> None:
    hosts = destdb(Deaths(10.0, 1000.0, 100.0))
    for collects in (False, True):
        assert death_s(hosts, 0.0) == 10.0
        assert hosts.find(ADDRESS, 25).dead_until == 10.0
        if collects:
            hosts.collect(110.0)
            assert hosts.remembered == 0
        assert death_s(hosts, 110.5) == 10.0
        hosts.forget_deaths()


def test_failures_of_others_that_were_being_made_when_it_died_are_no_further_deaths() -> None:
    hosts = destdb()
    host = hosts.find(ADDRESS, 25)
    some = [connect(hosts, host) for _ in range(3)]
    hosts.leave(some[0])
    assert hosts.note_failure(some[0], REFUSED, NO_CONNECTION, 1.0)
    for other in some[1:]:
        hosts.leave(other)
        assert not hosts.note_failure(other, REFUSED, NO_CONNECTION, 2.0)
    assert (host.failures, host.dead_until) == (1, 301.0)


def test_while_a_session_stands_a_host_is_alive_and_may_have_as_many_as_stand() -> None:
    hosts = destdb()
    host = hosts.find(ADDRESS, 25)
    for _ in range(2):
        hosts.stand(connect(hosts, host), 1.0)
    refused = connect(hosts, host)
    hosts.leave(refused)
    assert not hosts.note_failure(refused, REFUSED, NO_SESSION, 2.0)
    assert not host.is_dead(2.0)
    hosts.close(refused, 2.0)
    assert host.window is not None
    assert host.window.size == 2
    assert not host.may_have_more(1000, 2.0)


def test_a_connection_that_breaks_beside_sessions_halves_what_the_host_may_have() -> None:
    hosts = destdb()
    host = hosts.find(ADDRESS, 25)
    for _ in range(4):
        hosts.stand(connect(hosts, host), 1.0)
    broken = [connect(hosts, host) for _ in range(2)]
    for connection in broken:
        hosts.leave(connection)
        assert not hosts.note_failure(connection, REFUSED, NO_SESSION, 2.0, was_broken=True)
        assert host.window is not None
        assert host.window.size == 2  # once for all that was under way
        hosts.close(connection, 2.0)
    assert host.connections == 4
    assert host.endpoint.has_surplus
    for connection in host.listed()[:2]:
        hosts.leave(connection)
        assert host.endpoint.has_surplus
        hosts.close(connection, 2.5)
    assert host.connections == 2
    assert not host.endpoint.has_surplus


def test_the_only_job_of_a_message_goes_before_every_second_one_of_large_messages() -> None:
    hosts = destdb()
    host = hosts.find(ADDRESS, 25)
    connection = connect(hosts, host)
    large = concurrency(1, message=9)
    added = [job(message=9, concurrency=large) for _ in range(4)] + [job(message) for message in (1, 2, 3)]
    for one in added:
        host.add_job(connection, one)
    last = job(message=9, concurrency=large)
    host.add_job(connection, last)
    a, b, c, d, first, second, third = added
    assert list(connection.queue) == [first, a, second, b, third, c, d, last]
    assert host.queued == connection.jobs == 8


def test_a_time_of_death_is_shortened_by_up_to_a_tenth() -> None:
    chances = iter([0.0, 1.0, 0.5])
    hosts = DestDb(ScheduleLimits(), Deaths(10.0, 1000.0, 100.0), chance=lambda: next(chances))
    for expected_s in (10.0, 9.0, 9.5):
        assert death_s(hosts, 0.0) == pytest.approx(expected_s)
        hosts.forget_deaths()


def test_a_session_lost_before_a_message_is_no_session_beside_itself() -> None:
    hosts = destdb()
    host = hosts.find(ADDRESS, 25)
    only = connect(hosts, host)
    hosts.stand(only, 1.0)
    hosts.leave(only)
    assert hosts.note_failure(only, REFUSED, NO_SESSION, 2.0)
    assert host.is_dead(2.0)


def test_a_host_that_was_dead_has_a_trial_and_a_session_or_an_end_is_its_end() -> None:
    hosts = destdb()
    death_s(hosts, 0.0)
    host = hosts.find(ADDRESS, 25)
    trial = connect(hosts, host, 300.0)
    assert host.trial is trial
    assert not host.listed()
    hosts.leave(trial)
    hosts.close(trial, 301.0)
    assert host.trial is None
    again = connect(hosts, host, 302.0)
    hosts.stand(again, 303.0)
    assert host.trial is None
    assert host.newest() is again


def test_a_recovered_host_begins_with_a_window_of_one_if_nothing_of_its_set_stands() -> None:
    for stands_beside in (False, True):
        hosts, mx_set = destdb(), MxSet((("mx",), 25), window(9), None)
        if stands_beside:
            hosts.stand(connect(hosts, hosts.find("192.0.2.2", 25), 0.0, mx_set), 0.0)
        death_s(hosts, 0.0)
        hosts.stand(connect(hosts, hosts.find(ADDRESS, 25), 300.0, mx_set), 300.0)
        assert mx_set.window.size == (9 if stands_beside else 1)


def test_when_the_last_connection_is_closed_it_is_remembered_when_that_one_was_made() -> None:
    hosts = destdb()
    host = hosts.find(ADDRESS, 25)
    older, newer = connect(hosts, host, 1.0), connect(hosts, host, 2.0)
    for connection in (older, newer):
        hosts.stand(connection, 3.0)
        hosts.leave(connection)
    hosts.close(newer, 4.0)
    assert host.made_at == -math.inf
    hosts.close(older, 5.0)
    assert (host.made_at, host.closed_at, host.is_unused) == (1.0, 5.0, False)
    assert hosts.changes == 1
    assert hosts.urgent_changes == 0


def test_a_connection_without_a_session_leaves_no_record() -> None:
    hosts = destdb()
    host = hosts.find(ADDRESS, 25)
    connection = connect(hosts, host)
    hosts.leave(connection)
    hosts.close(connection, 1.0)
    assert host.is_unused


def test_records_unused_for_long_are_forgotten() -> None:
    hosts = destdb(Deaths(10.0, 1000.0, 100.0))
    succeed(hosts, "192.0.2.7", 0.0)
    death_s(hosts, 0.0)
    closed, dead = hosts.find("192.0.2.7", 25), hosts.find(ADDRESS, 25)
    hosts.collect(99.9)
    assert not closed.is_unused
    hosts.collect(100.0)
    assert closed.is_unused
    hosts.collect(109.9)
    assert dead.failures == 1
    hosts.collect(110.0)
    assert dead.is_unused
    assert (hosts.remembered, list(hosts.records(0.0))) == (0, [])


def test_each_collection_looks_at_some() -> None:
    hosts = destdb()
    for number in range(5):
        succeed(hosts, f"192.0.2.{number}", float(number))
        fail(hosts, f"198.51.100.{number}", REFUSED, NO_CONNECTION, float(number))
    hosts.collect(100_000.0, count=2)
    assert len(list(hosts.records(0.0))) == 6
    hosts.collect(100_000.0, count=3)
    assert not list(hosts.records(0.0))


@pytest.mark.parametrize("is_dead", [False, True])
def test_the_oldest_records_are_forgotten_beyond_the_limit(is_dead: bool) -> None:
    hosts = destdb(limit=3)
    for now, number in enumerate((1, 2, 3, 1, 4)):
        address = f"192.0.2.{number}"
        if is_dead:
            fail(hosts, address, REFUSED, NO_CONNECTION, 400.0 * now)
        else:
            succeed(hosts, address, float(now))
    assert [record.address for record in hosts.records(0.0)] == ["192.0.2.3", "192.0.2.1", "192.0.2.4"]


def test_a_host_without_records_and_users_is_not_kept() -> None:
    hosts = destdb()
    death_s(hosts, 0.0)
    host = hosts.find("192.0.2.9", 25)
    assert hosts.find("192.0.2.9", 25) is host
    assert (len(hosts.hosts()), len(hosts.endpoints())) == (1, 2)
    del host
    gc.collect()
    assert not hosts.hosts()
    assert [one.address for one in hosts.endpoints()] == [ADDRESS]
    hosts.forget_deaths()
    gc.collect()
    assert not hosts.endpoints()


def test_forgotten_deaths_are_gone_and_told() -> None:
    hosts = destdb()
    hosts.forget_deaths()
    assert hosts.urgent_changes == 0
    death_s(hosts, 0.0)
    host = hosts.find(ADDRESS, 25)
    assert hosts.urgent_changes == 1
    hosts.forget_deaths()
    assert (host.is_dead(0.0), hosts.remembered, hosts.urgent_changes) == (False, 0, 2)


def test_the_first_death_is_at_most_the_shortest_retry_delay_and_the_longest_the_longest() -> None:
    assert Deaths.within([900.0, 3600.0, 86400.0]) == Deaths(300.0, 7200.0)
    assert Deaths.within([1.0, 5.0]) == Deaths(1.0, 5.0)


def test_leaving_twice_counts_once() -> None:
    hosts, mx_set = destdb(), MxSet((("mx",), 25), window(9), None)
    host = hosts.find(ADDRESS, 25)
    one, other = connect(hosts, host, 0.0, mx_set), connect(hosts, host, 0.0, mx_set)
    hosts.stand(one, 0.0)
    hosts.leave(one)
    hosts.leave(one)
    assert (mx_set.connections, mx_set.standing, host.connections) == (1, 0, 2)
    hosts.leave(other)
    hosts.close(other, 0.0)
    hosts.close(one, 0.0)
    assert (mx_set.connections, host.connections, host.standing) == (0, 0, 0)


def test_a_session_that_stands_after_it_left_is_not_counted() -> None:
    hosts, mx_set = destdb(), MxSet((("mx",), 25), window(9), None)
    host = hosts.find(ADDRESS, 25)
    late = connect(hosts, host, 0.0, mx_set)
    hosts.leave(late)
    hosts.stand(late, 1.0)
    hosts.close(late, 2.0)
    assert (host.standing, mx_set.standing, host.connections) == (0, 0, 0)
