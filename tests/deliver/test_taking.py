"""Taking from the queue: when, and how much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock

from tests.deliver.harness import Bench
from tests.fakes.sink import Action, Sink


def test_new_mail_goes_at_once_and_not_at_the_next_poll() -> None:
    bench = Bench(interval_low_s=60.0, interval_high_s=600.0)
    sink = bench.sink()
    bench.task.start()
    bench.run(100, 1)
    bench.put(b"r@b.example")
    bench.run(0.01, 0.001)
    assert sink.acknowledged() == [b"r@b.example"]


def test_a_late_start_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(delay_start_s=10.0)
    sink = bench.sink()
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run(9)
    assert sink.received == []
    bench.run(2)
    assert sink.acknowledged() == [b"r@b.example"]


def test_a_deferred_entry_is_tried_again_when_it_is_due() -> None:
    answers: list[bytes] = [b"450 later\r\n", b"250 ok\r\n"]

    def answer(sink: Sink) -> Action:
        return answers.pop(0)

    bench = Bench()
    sink = bench.sink({"dot": answer})
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(890, 1)
    assert bench.statuses() == {"deferred": 1}
    bench.run(110, 1)
    assert sink.acknowledged() == [b"r@b.example"]


def test_trouble_with_the_queue_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from twisted.internet.defer import fail

    from mailismus.errors import Unavailable

    bench = Bench(interval_error_s=180.0)
    sink = bench.sink()
    take: Callable[..., object] = bench.provider.take
    monkeypatch.setattr(bench.provider, "take", lambda *_: fail(Unavailable("sick")))
    bench.put(b"r@b.example")
    bench.task.start()
    bench.run(10, 0.5)
    monkeypatch.setattr(bench.provider, "take", take)
    bench.run(160, 0.5)
    assert sink.received == []
    bench.run(20, 0.5)
    assert sink.acknowledged() == [b"r@b.example"]


def test_an_idle_task_does_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    takes: list[object] = []
    take = bench.provider.take

    def counted(*arguments: object) -> object:
        takes.append(arguments)
        return take(*arguments)  # type: ignore[arg-type]  # passed on as it came

    bench.task.start()
    bench.run(1)
    monkeypatch.setattr(bench.provider, "take", counted)
    bench.run(150, 0.5)
    assert len(takes) <= 2 * 11


class OtherTimer:
    """A timer that says when it is due by another clock than the one that tells the time."""

    def __init__(self, timer: IDelayedCall) -> None:
        self.active, self.reset, self.cancel = timer.active, timer.reset, timer.cancel
        self._due = timer.getTime

    def getTime(self) -> float:
        return self._due() - 1_699_999_000.0


class OtherClock:
    """A server's: its timers never jump, the time of day may."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.seconds = clock, clock.seconds

    def callLater(self, delay: float, *arguments: Any) -> OtherTimer:
        return OtherTimer(self._clock.callLater(delay, *arguments))


def test_an_entry_due_before_the_next_poll_is_taken_when_it_is_due() -> None:
    bench = Bench(interval_high_s=5000.0)
    sink = bench.sink({"dot": b"450 later\r\n"})
    bench.task._clock = OtherClock(bench.clock)  # type: ignore[assignment]  # as far as the task asks
    bench.task.start()
    bench.run(1)
    bench.put(b"r@b.example")
    bench.run(1)
    assert bench.statuses() == {"deferred": 1}
    sink.script.clear()
    bench.run(1100, 1)
    assert sink.acknowledged() == [b"r@b.example"]
