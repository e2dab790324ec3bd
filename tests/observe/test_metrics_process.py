"""The lag of the event loop."""

from __future__ import annotations

from twisted.internet.task import Clock

from mailismus.observe.metrics_process import EVERY_S, Process


def test_the_lag_is_what_the_timer_comes_late() -> None:
    clock, late = Clock(), [0.0]
    process = Process("1.0", 0.5, lambda: 0, clock, lambda: clock.seconds() + late[0])
    process.start()
    clock.advance(EVERY_S)
    late[0] += 0.3
    clock.advance(EVERY_S)
    clock.advance(EVERY_S)
    lag = process.lag_s
    assert sum(lag.counts) == 3
    assert abs(lag.total - 0.3) < 1e-6
    process.stop()
    assert clock.getDelayedCalls() == []
