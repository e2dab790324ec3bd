"""Ends of sessions: who waits for the reply to QUIT, and who does not."""

from __future__ import annotations

from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.sessions.host_session import QUIT_S
from tests.deliver.harness import Bench, relay
from tests.deliver.schedule.desk import Desk
from tests.deliver.schedule.world import REFUSED
from tests.fakes.sink import Act

SLOW, GOOD = "192.0.2.1", "192.0.2.2"


def bench_of_two(maxconnections: int) -> Bench:
    return Bench(relay(SLOW), relay(GOOD, 25, b"good.example"), maxconnections=maxconnections)


def test_a_host_that_is_slow_to_answer_quit_keeps_no_worker_that_other_mail_waits_for() -> None:
    bench = bench_of_two(1)
    slow, good = bench.sink({"QUIT": Act.SILENCE}), bench.sink(host=GOOD)
    bench.task.start()
    bench.put(b"r1@b.example")
    bench.run(0.5)
    bench.put(b"r2@good.example")
    bench.run(0.5)
    assert slow.connections[0].commands[-1] == b"QUIT"
    assert slow.connections[0].is_closed
    assert good.acknowledged() == [b"r2@good.example"]
    assert bench.statuses() == {"sent": 2}


def test_the_reply_is_awaited_while_nothing_waits_for_the_worker() -> None:
    bench = bench_of_two(2)
    slow = bench.sink({"QUIT": Act.SILENCE})
    bench.task.start()
    bench.put(b"r1@b.example")
    bench.run(6)
    assert slow.connections[0].commands[-1] == b"QUIT"
    assert not slow.connections[0].is_closed
    bench.run(QUIT_S)
    assert slow.connections[0].is_closed


def test_a_host_or_set_that_said_how_many_are_too_many_is_waited_for() -> None:
    for cut in ("", "host", "set"):
        desk = Desk(ScheduleLimits(max_connections=1))
        other = NextHop("other.example", 25)
        desk.hosts_of[other] = (("192.0.2.9",),)
        desk.add()
        (connection,) = desk.opened
        desk.stand(connection)
        assert not desk.schedule.is_worker_wanted(connection)
        desk.add(2, b"b", next_hop=other)
        assert len(desk.schedule.line) == 1
        if cut == "host":
            connection.host.endpoint.refuse(desk.now, 1, REFUSED)
        elif cut == "set":
            connection.mx_set.window.note_cut(desk.now, desk.now, REFUSED, 1)
        assert desk.schedule.is_worker_wanted(connection) is not bool(cut)
