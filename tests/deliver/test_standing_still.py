"""A process that stood still (SIGSTOP, a paused virtual machine): its next look at the deadlines comes too late."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.deliver.harness import Bench
from tests.fakes.sink import Act, Action, Sink


def late(bench: Bench, seconds: float, reply: bytes) -> Callable[[Sink], Action]:
    """A reply that takes its time."""

    def answer(sink: Sink) -> Action:
        bench.clock.callLater(seconds, sink.transport_of().write, reply)
        return b""

    return answer


@pytest.mark.parametrize("step", ["greeting", "EHLO", "dot"])
@pytest.mark.parametrize("stood_s", [301.0, 900.0, 86_400.0])
def test_a_reply_that_came_while_the_process_stood_still_is_read(step: str, stood_s: float) -> None:
    bench = Bench()
    sink = bench.sink()
    sink.script = {step: late(bench, 2, b"220 mx\r\n" if step == "greeting" else b"250 ok\r\n")}
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run(1)
    assert not bench.lines()
    bench.clock.advance(stood_s)
    bench.run(5)
    (line,) = bench.lines()
    assert b"status=sent" in line
    assert len(sink.received) == 1
    assert len(sink.connections) == 1


def test_a_host_that_stays_silent_after_it_has_its_whole_time_from_then_on_and_no_more() -> None:
    bench = Bench()
    bench.sink({"dot": Act.SILENCE})
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run(100, 0.5)
    bench.clock.advance(900)
    bench.run(490, 0.5)
    assert not bench.lines()
    bench.run(20, 0.5)
    (line,) = bench.lines()
    assert b"timed out after the final dot" in line
