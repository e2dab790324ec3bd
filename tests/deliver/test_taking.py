"""Taking from the queue: when, and how much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock

from mailismus.queue.interface import Area, Message
from tests.deliver.harness import Bench, stopped
from tests.fakes.sink import Act, Action, Sink


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
    bench.task._taking._clock = OtherClock(bench.clock)  # type: ignore[assignment]  # as far as the task asks
    bench.task.start()
    bench.run(1)
    bench.put(b"r@b.example")
    bench.run(1)
    assert bench.statuses() == {"deferred": 1}
    sink.script.clear()
    bench.run(1100, 1)
    assert sink.acknowledged() == [b"r@b.example"]


class SlowTakes:
    """Takes of deferred entries end when they are told to, as those of a queue that reads many files for them."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self._take = bench.provider.take
        self.limits: list[tuple[Area, int]] = []
        """Of each take."""
        self._waiting: list[tuple[Deferred[list[Message]], tuple[Any, ...]]] = []
        self._is_over = False
        monkeypatch.setattr(bench.provider, "take", self._begin)

    def _begin(self, area: Area, limit: int, *rest: Any) -> Deferred[list[Message]]:
        self.limits.append((area, limit))
        if area is not Area.DEFERRED or self._is_over:
            return self._take(area, limit, *rest)
        taking: Deferred[list[Message]] = Deferred()
        self._waiting.append((taking, (area, limit, *rest)))
        return taking

    @property
    def count(self) -> int:
        """How many have not ended."""
        return len(self._waiting)

    def end(self) -> None:
        """They end with what there is, and later ones at once."""
        self._is_over = True
        waiting, self._waiting = self._waiting, []
        for taking, arguments in waiting:
            self._take(*arguments).chainDeferred(taking)


def bench_with_deferred(count: int, **changes: object) -> Bench:
    """So many entries of one sender are deferred, and due."""
    bench = Bench(delays_s=(60.0,), **changes)  # type: ignore[arg-type]  # by name
    sink = bench.sink({"dot": b"450 later\r\n"})
    bench.task.start()
    for number in range(count):
        bench.put(b"r%d@b.example" % number)
    bench.run(5)
    assert bench.count(Area.DEFERRED) == count
    sink.script.clear()
    return bench


def test_new_mail_does_not_wait_for_a_slow_take_of_deferred_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with_deferred(300)
    slow = SlowTakes(bench, monkeypatch)
    bench.run(100, 1)
    assert slow.count == 1, "one take of an area at a time"
    sink = bench.sink()
    for number in range(3):
        bench.put(b"new%d@b.example" % number)
        bench.run(0.1)
    assert sink.acknowledged() == [b"new0@b.example", b"new1@b.example", b"new2@b.example"]
    slow.end()
    bench.run(1)
    assert len(sink.acknowledged()) == 303
    assert (bench.task.held, bench.task._held.room()) == (0, bench.task._held.limit)
    assert bench.task._held._promised == {}


def test_what_takes_may_bring_is_never_more_than_the_cache_and_some_room_is_left_to_new_mail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = bench_with_deferred(300, queuecache=400)
    slow = SlowTakes(bench, monkeypatch)
    bench.run(100, 1)
    bench.sink({"greeting": Act.SILENCE})
    for number in range(900):
        bench.put(b"new%d@b.example" % number, sender=b"s%d@a.example" % number)
    bench.run(1)
    assert next(each for each in slow.limits if each[0] is Area.DEFERRED) == (Area.DEFERRED, 399)
    assert bench.task.held == 1
    slow.end()
    bench.run(1)
    assert slow.count == 0
    assert 350 <= bench.task.held <= 400


@pytest.mark.parametrize("cache", [1, 2, 5])
def test_a_small_cache_is_used_by_all_areas(monkeypatch: pytest.MonkeyPatch, cache: int) -> None:
    bench = bench_with_deferred(7, queuecache=cache)
    sink = bench.sink()
    for number in range(7):
        bench.put(b"new%d@b.example" % number)
    bench.run(100, 1)
    assert len(sink.acknowledged()) == 14


def test_what_a_take_brings_after_the_stop_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with_deferred(3)
    slow = SlowTakes(bench, monkeypatch)
    bench.run(100, 1)
    assert slow.count == 1
    stopped(bench, 1.0)
    slow.end()
    bench.run(1)
    assert (bench.task.held, bench.queue.out_count) == (0, 0)
    assert bench.count(Area.DEFERRED) == 3
