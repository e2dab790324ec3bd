"""Ages of connections: busy ones end with their transaction, so that the load spreads over the hosts of a site."""

from __future__ import annotations

import pytest

from mailismus.config.values.settings import ScheduleSettings
from mailismus.deliver.schedule.limits import NO_LIMIT
from mailismus.deliver.sessions import all_sessions
from tests.deliver.harness import Bench, deliver_settings, relay

FIRST, SECOND = "192.0.2.1", "192.0.2.2"
ACTIVE_S, IDLE_S = 10.0, 5.0


def ages(active_s: float = ACTIVE_S, idle_s: float = IDLE_S) -> ScheduleSettings:
    return ScheduleSettings(20, 10, 3, idle_s, active_s, 300.0, 7200.0, 7200.0)


def test_both_times_are_those_of_the_settings_and_0_is_none() -> None:
    found = all_sessions.limits_of(deliver_settings(schedule=ages(70.0, 7.0)))
    assert (found.max_age_s, found.max_idle_s) == (70.0, 7.0)
    none = all_sessions.limits_of(deliver_settings(schedule=ages(0.0, 0.0), maxmessages=0))
    assert min(none.max_age_s, none.max_idle_s, none.max_messages) == NO_LIMIT


def trickle(bench: Bench, count: int, every_s: float = 1.0) -> None:
    """A message at a time: there is never more than one connection's work."""
    for number in range(count):
        bench.put(b"r%d@b.example" % number)
        bench.run(every_s)


def test_a_busy_connection_ends_when_it_is_old_and_not_before() -> None:
    bench = Bench(schedule=ages())
    sink = bench.sink()
    bench.task.start()
    trickle(bench, 35)
    assert [connection.messages for connection in sink.connections] == [10, 10, 10, 5]
    assert all(connection.commands[-1] == b"QUIT" for connection in sink.connections[:-1])
    assert sink.most_open == 1
    assert bench.statuses() == {"sent": 35}


def test_no_age_is_none() -> None:
    bench = Bench(schedule=ages(active_s=0.0))
    sink = bench.sink()
    bench.task.start()
    trickle(bench, 35)
    assert [connection.messages for connection in sink.connections] == [35]


def test_a_small_load_goes_from_host_to_host_as_connections_age() -> None:
    bench = Bench(has_relay=False, schedule=ages())
    bench.names.mx("b.example", (10, "mx1.b.example", FIRST), (10, "mx2.b.example", SECOND))
    sinks = [bench.sink(), bench.sink(host=SECOND)]
    bench.task.start()
    trickle(bench, 40)
    assert [len(sink.acknowledged()) for sink in sinks] == [20, 20]
    assert [len(sink.connections) for sink in sinks] == [2, 2]


def test_a_connection_ends_after_so_many_messages() -> None:
    bench = Bench(maxmessages=3, schedule=ages())
    sink = bench.sink()
    bench.task.start()
    trickle(bench, 8)
    assert [connection.messages for connection in sink.connections] == [3, 3, 2]


def test_jobs_behind_an_old_connection_go_over_another_and_lose_no_attempt() -> None:
    bench = Bench(maxserverconnections=1, schedule=ages(active_s=3.0))
    bench.network.latency_s = 0.5
    sink = bench.sink()
    bench.task.start()
    for number in range(12):
        bench.put(b"r%d@b.example" % number)
    bench.run(60)
    assert sorted(sink.acknowledged()) == sorted(b"r%d@b.example" % number for number in range(12))
    assert len(sink.connections) > 2
    assert sink.most_open == 1
    assert bench.statuses() == {"sent": 12}


@pytest.mark.parametrize(("gap_s", "connections"), [(IDLE_S - 1.0, 1), (IDLE_S + 1.0, 3)])
def test_an_idle_connection_has_a_time_of_its_own(gap_s: float, connections: int) -> None:
    bench = Bench(relay(FIRST), schedule=ages(active_s=100.0))
    sink = bench.sink()
    bench.task.start()
    trickle(bench, 3, gap_s)
    assert len(sink.connections) == connections
