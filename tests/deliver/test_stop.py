"""A clean stop: what is cut off, what is waited for, what is in doubt."""

from __future__ import annotations

import pytest

from mailismus.queue.interface import Area
from tests.deliver.harness import Bench, stopped
from tests.fakes.sink import Act


@pytest.mark.parametrize("step", ["greeting", "EHLO", "MAIL", "RCPT", "DATA"])
def test_a_stop_before_the_final_dot_cuts_off_and_gives_back(step: str) -> None:
    bench = Bench()
    bench.sink({step: Act.SILENCE})
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(1)
    over = stopped(bench, 30)
    bench.run(1)
    assert over == [0.0]
    assert bench.lines() == []
    assert bench.count(Area.INCOMING) == 1
    assert bench.task.held == 0


def test_a_stop_waits_for_the_reply_to_a_final_dot() -> None:
    bench = Bench()
    sink = bench.sink({"dot": Act.SILENCE})
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(1)
    over = stopped(bench, 30)
    bench.run(5)
    assert over == []
    sink.connections[0].transport_of().write(b"250 at last\r\n")
    bench.run(1)
    assert len(over) == 1
    assert bench.statuses() == {"sent": 1}


def test_what_is_unanswered_at_the_deadline_is_logged_as_in_doubt() -> None:
    bench = Bench()
    bench.sink({"dot": Act.SILENCE})
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(1)
    over = stopped(bench, 30)
    bench.run(31, 0.5)
    assert over == [pytest.approx(30.0, abs=0.6)]
    (line,) = bench.lines(b"status=deferred")
    assert b"server stopped after the final dot: the message may have been sent" in line
    assert bench.task.counters.in_doubt == 1


def test_a_stop_sends_no_new_transaction() -> None:
    bench = Bench(maxserverconnections=1)
    sink = bench.sink()
    for number in range(500):
        bench.put(b"r%d@b.example" % number)
    bench.network.latency_s = 0.05
    bench.task.start()
    bench.run(1)
    stopped(bench, 30)
    bench.run(2)
    delivered = len(sink.acknowledged())
    assert 0 < delivered < 500
    assert bench.statuses() == {"sent": delivered}
    bench.run(2)
    assert bench.count(Area.INCOMING) == 500 - delivered
    assert bench.task.held == 0
