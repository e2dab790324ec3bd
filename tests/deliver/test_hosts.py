"""Hosts: for how long they are dead, and what is forgotten."""

from __future__ import annotations

import gc

import pytest

from mailismus.deliver.hosts import FORGET_S, Deaths, HostFailure, Hosts
from mailismus.mail.reply import Reply

REFUSED = Reply(451, b"4.4.1", b"refused")
BUSY = Reply(451, b"4.3.2", b"busy")


def deaths_of(hosts: Hosts, kind: HostFailure, times: int, start: float = 0.0) -> list[float]:
    """How long a host is dead that fails again whenever it may be tried."""
    host, now, found = hosts.find("a", 25), start, []
    for _ in range(times):
        hosts.note_failure(host, REFUSED, kind, now)
        found.append(host.dead_until - now)
        now = host.dead_until
    return found


def test_a_host_is_dead_five_minutes_then_twice_as_long_up_to_two_hours() -> None:
    minutes = [death_s / 60 for death_s in deaths_of(Hosts(), HostFailure.NO_CONNECTION, 8)]
    assert minutes == [5, 10, 20, 40, 80, 120, 120, 120]


def test_one_that_refuses_sessions_is_dead_five_minutes_each_time() -> None:
    assert deaths_of(Hosts(), HostFailure.NO_SESSION, 3) == [300.0] * 3


@pytest.mark.parametrize(
    ("delays_s", "first_s", "max_s"),
    [((900.0, 14400.0), 300.0, 7200.0), ((1.0,), 1.0, 1.0), ((60.0, 0.1, 3600.0), 0.1, 3600.0)],
)
def test_who_retries_sooner_finds_out_sooner(delays_s: tuple[float, ...], first_s: float, max_s: float) -> None:
    assert Deaths.within(delays_s) == Deaths(first_s, max_s)


def test_connections_that_fail_together_are_one_death() -> None:
    hosts = Hosts()
    host = hosts.find("a", 25)
    for now in (0.0, 0.0, 1.0):
        hosts.note_failure(host, REFUSED, HostFailure.NO_CONNECTION, now)
    assert host.dead_until == 300.0


def test_a_session_that_stands_ends_it_and_the_next_death_is_a_first_one() -> None:
    hosts = Hosts()
    host = hosts.find("a", 25)
    deaths_of(hosts, HostFailure.NO_CONNECTION, 4)
    hosts.note_session(host)
    assert not host.is_dead(0.0)
    assert hosts.remembered == 0
    assert deaths_of(hosts, HostFailure.NO_CONNECTION, 2) == [300.0, 600.0]


def test_a_death_long_ago_does_not_count() -> None:
    hosts = Hosts()
    deaths_of(hosts, HostFailure.NO_CONNECTION, 3)
    later = hosts.find("a", 25).dead_until + FORGET_S + 1
    assert deaths_of(hosts, HostFailure.NO_CONNECTION, 1, start=later) == [300.0]


def test_a_host_is_the_same_for_everybody_while_it_is_dead_and_ports_differ() -> None:
    hosts = Hosts()
    deaths_of(hosts, HostFailure.NO_CONNECTION, 1)
    gc.collect()
    assert hosts.find("a", 25).is_dead(0.0)
    assert not hosts.find("a", 26).is_dead(0.0)


def test_a_host_that_nobody_needs_takes_no_memory() -> None:
    hosts = Hosts()
    kept = hosts.find("a", 25)
    kept.connections = 1
    assert hosts.find("a", 25) is kept
    del kept
    gc.collect()
    assert hosts.find("a", 25).connections == 0


def test_no_more_than_a_number_of_dead_hosts_is_remembered_and_the_oldest_goes() -> None:
    hosts = Hosts(limit=3)
    for number in range(5):
        hosts.note_failure(hosts.find(f"h{number}", 25), REFUSED, HostFailure.NO_CONNECTION, float(number))
    assert hosts.remembered == 3
    assert [hosts.find(f"h{number}", 25).is_dead(4.0) for number in range(5)] == [False, False, True, True, True]


def test_all_deaths_can_be_forgotten() -> None:
    hosts = Hosts()
    host = hosts.find("a", 25)
    deaths_of(hosts, HostFailure.NO_CONNECTION, 3)
    hosts.forget_deaths()
    assert not host.is_dead(0.0)
    assert hosts.remembered == 0
    assert deaths_of(hosts, HostFailure.NO_CONNECTION, 1) == [300.0]


def test_a_host_with_sessions_is_paused_and_not_dead() -> None:
    hosts = Hosts()
    host = hosts.find("a", 25)
    host.connections = host.sessions = 1
    hosts.note_failure(host, BUSY, HostFailure.NO_CONNECTION, 0.0)
    assert (host.is_dead(0.0), host.is_paused(0.0), host.is_paused(30.0)) == (False, True, False)
    host.sessions = 0
    assert not host.is_paused(0.0)
