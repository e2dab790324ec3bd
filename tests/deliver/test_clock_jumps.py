"""The clock is set while mail waits, whatever its next hop is like: nothing bounces, and retry delays hold in real time."""

from __future__ import annotations

import re

import pytest
from twisted.internet.defer import Deferred

from mailismus.config.values.settings import RetrySettings
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.schedule.destdb import Deaths
from mailismus.deliver.task import DeliverTask
from mailismus.dns.mx import MxHost
from mailismus.mail.outcome import Outcome
from mailismus.queue.manager import QueueManager
from tests.deliver.harness import DIRECTORY, UNKNOWN, Bench, deliver_settings, relay
from tests.fakes.sink import Script

DAY_S = 86400.0
STEPS = {"-400d": -400 * DAY_S, "-1h": -3600.0, "+10min": 600.0, "+10d": 10 * DAY_S, "+400d": 400 * DAY_S}
DELAYS_S = (120.0, 240.0)
SLACK_S = 20.0
"""A look at the queue every 5 s, and some for the turns of the clock. In real time."""


class Table:
    """One row: a bench, and when each recipient was tried, in real time."""

    def __init__(self, host: str) -> None:
        self.bench = Bench(delays_s=DELAYS_S, interval_high_s=5.0)
        self.tried: dict[bytes, list[float]] = {}
        self._seen = 0
        self.bench.task.start()
        if host == "up":
            self.bench.sink(Script())
        elif host == "silent":
            self.bench.network.black_holes.add("192.0.2.1")
        elif host == "dead":
            self.put(b"first")
            self.run(2)
            assert self.bench.task.hosts.remembered == 1

    def put(self, name: bytes) -> None:
        self.bench.put(name + b"@b.example")

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.bench.clock.advance(1.0)
            for _ in range(12):
                self.bench.clock.advance(0)
            self._look()

    def _look(self) -> None:
        now = self.bench.world.monotonic()
        lines = self.bench.maillog.lines
        for line in lines[self._seen :]:
            found = re.search(rb"to=<(\w+)@", line)
            if found and b"status=" in line:
                self.tried.setdefault(found[1], []).append(now)
        self._seen = len(lines)


@pytest.mark.parametrize("host", ["up", "down", "silent", "dead"])
@pytest.mark.parametrize("back", [False, True], ids=["there", "and back"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_bounces_nothing_and_loses_no_delay(step: str, back: bool, host: str) -> None:
    table = Table(host)
    for name, wait_s in ((b"old", 60), (b"young", 2)):
        table.put(name)
        table.run(wait_s)
    table.bench.world.jump(STEPS[step])
    jumps = [table.bench.world.monotonic()]
    table.run(1)
    table.put(b"new")
    table.run(90)
    if back:
        table.bench.world.jump(-STEPS[step])
        jumps.append(table.bench.world.monotonic())
        table.put(b"last")
    table.run(900)
    statuses = table.bench.statuses()
    if host == "up":
        assert statuses == {"sent": 3 + back}
        return
    assert set(statuses) == {"deferred"}, table.bench.lines(b"expired")
    ended = table.bench.world.monotonic()
    for name, times in table.tried.items():
        early = 0
        for number, (tried_at, again_at) in enumerate(zip(times, [*times[1:], ended], strict=True)):
            delay_s = DELAYS_S[min(number, len(DELAYS_S) - 1)]
            gap_s = again_at - tried_at
            assert gap_s <= delay_s * 1.1 + SLACK_S + 35.0 * (host == "silent"), (name, number, gap_s)
            early += gap_s < delay_s - 1 and again_at != ended
        assert early <= sum(jump_s > 0 for jump_s in (STEPS[step], -STEPS[step])[: 1 + back]), (name, times)


# Mail of an earlier run, of which nobody knows what the clock did


def earlier_run(step_s: float, count: int, queuecache: int) -> Bench:
    """A server that starts after the clock was set, over mail that arrived before; its relay is down."""
    bench = Bench(delays_s=DELAYS_S, interval_high_s=5.0, queuecache=queuecache)
    for number in range(count):
        bench.put(b"old%d@b.example" % number)
    bench.clock.advance(0)
    bench.world.jump(step_s)
    retry = RetrySettings(72 * 3600.0, 24 * 3600.0, DELAYS_S)
    bench.queue = QueueManager(bench.provider, retry, bench.clock, bench.world.monotonic, bench.maillog)
    bench.task = DeliverTask(
        deliver_settings(relay("192.0.2.1"), interval_high_s=5.0, queuecache=queuecache),
        bench.store,
        DIRECTORY,
        b"mx.example",
        bench.queue,
        bench.maillog,
        bench.world,
        Locator(bench.names, bench.names),
        Deaths.within(DELAYS_S),
    )
    bench.queue.on_jump(bench.task.clock_jumped)
    bench.task.start()
    return bench


def test_what_is_over_its_time_expires_by_a_connection_of_its_own_alone() -> None:
    """Some connect; for the others the relay is known to be dead, and they wait until it may be asked again."""
    bench = earlier_run(400 * DAY_S, count=12, queuecache=4)
    for _ in range(40):
        bench.run(60, step_s=2.0)
    assert bench.statuses()["expired"] == 12
    assert bench.lines(b"relay=none", b"deferred")
    assert not bench.lines(b"relay=none", b"expired")


def test_a_host_that_is_known_to_be_dead_expires_nothing_though_the_clock_jumps_again() -> None:
    bench = earlier_run(10 * DAY_S, count=8, queuecache=4)
    for _ in range(6):
        bench.run(4, step_s=1.0)
        bench.world.jump(10 * DAY_S)
    assert not bench.lines(b"relay=none", b"expired")


# What is known of hosts and names


def test_a_jump_ends_what_is_known_of_hosts() -> None:
    bench = Bench(delays_s=DELAYS_S)
    bench.task.start()
    bench.put(b"a@b.example")
    bench.run(1)
    assert bench.task.hosts.remembered == 1
    bench.sink()
    bench.world.jump(600)
    bench.put(b"b@b.example")
    bench.run(1)
    assert bench.task.hosts.remembered == 0
    assert len(bench.lines(b"status=sent", b"to=<b@")) == 1


def test_a_connection_that_was_begun_before_a_jump_tells_nothing_of_its_host() -> None:
    """As when a machine that was suspended goes on: what it was about to do fails, and means nothing."""
    bench = Bench(delays_s=DELAYS_S, interval_high_s=5.0)
    bench.network.black_holes.add("192.0.2.1")
    bench.task.start()
    bench.put(b"a@b.example")
    bench.run(29.5)
    assert len(bench.network.attempts) == 1
    bench.world.jump(10 * DAY_S)
    bench.network.black_holes.clear()
    bench.sink()
    bench.put(b"b@b.example")
    bench.run(3)
    assert bench.statuses() == {"sent": 2}


def test_idle_sessions_end_at_a_jump() -> None:
    bench = Bench(delays_s=DELAYS_S, interval_high_s=1.0)
    bench.sink()
    bench.task.start()
    bench.put(b"a@b.example")
    bench.run(1)
    assert bench.task.sessions.open == 1
    bench.world.jump(600)
    bench.run(1.5)
    assert bench.task.sessions.open == 0
    bench.put(b"b@b.example")
    bench.run(1)
    assert bench.statuses() == {"sent": 2}


def test_names_are_asked_for_anew_after_a_jump() -> None:
    forgotten: list[None] = []
    bench = Bench(delays_s=DELAYS_S, has_relay=False)
    bench.task.sessions.lookups._locator.forget = lambda: forgotten.append(None)
    bench.names.mx("b.example", (10, "mx.b.example", "192.0.2.1"))
    bench.sink()
    bench.task.start()
    bench.put(b"a@b.example")
    bench.run(1)
    bench.put(b"b@b.example")
    bench.run(1)
    assert bench.names.asked == ["b.example"]
    bench.world.jump(600)
    bench.put(b"c@b.example")
    bench.run(1)
    assert bench.names.asked == ["b.example", "b.example"]
    assert forgotten == [None]


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "known"])
def test_a_look_up_that_failed_expires_what_is_over_its_time_if_somebody_was_asked(is_asked: bool) -> None:
    bench = Bench(delays_s=DELAYS_S, has_relay=False)
    bench.put(b"a@b.example")
    bench.clock.advance(0)
    bench.world.jump(10 * DAY_S)
    again = QueueManager(
        bench.provider,
        RetrySettings(72 * 3600.0, 24 * 3600.0, DELAYS_S),
        bench.clock,
        bench.world.monotonic,
        bench.maillog,
    )
    bench.task._queue = bench.task._taking._queue = bench.task._settling._queue = bench.queue = again
    answer: Deferred[tuple[MxHost, ...] | Outcome] = Deferred()
    bench.names.domains["b.example"] = answer if is_asked else UNKNOWN
    bench.task.start()
    bench.run(1)
    if is_asked:
        answer.callback(UNKNOWN)
        bench.run(1)
    assert bench.statuses() == {"expired" if is_asked else "deferred": 1}


def test_delays_in_the_log_are_true_whatever_the_clock_did() -> None:
    bench = Bench(delays_s=DELAYS_S)
    bench.sink()
    for jump_s in (400 * DAY_S, -400 * DAY_S, -400 * DAY_S, 400 * DAY_S):
        bench.put(b"a@b.example")
        bench.clock.advance(0)
        bench.clock.advance(30.0)
        bench.world.jump(jump_s)
        bench.task.start()
        bench.run(1)
        bench.task._taking.stop()
    assert [re.search(rb"delay=(\d+), delays=(\d+)/", line).groups() for line in bench.lines()] == [(b"30", b"30")] * 4  # type: ignore[union-attr]  # each has them
