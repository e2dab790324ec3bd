"""The clock is set while mail waits, whatever its next hop is like: nothing bounces, and retry delays hold in real time."""

from __future__ import annotations

import re

import pytest

from mailismus.config.settings import RetrySettings
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.manager import QueueManager
from tests.deliver.harness import DIRECTORY, Bench, deliver_settings, relay
from tests.fakes.sink import Script

DAY_S = 86400.0
STEPS = {"-400d": -400 * DAY_S, "-1h": -3600.0, "+10min": 600.0, "+10d": 10 * DAY_S, "+400d": 400 * DAY_S}
DELAYS_S = (120.0, 240.0)
SLACK_S = 20.0
"""A look at the queue every 15 s, and a connection that is made."""
"""Seconds of real time."""


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
            assert self.bench.task.troubled_hosts == 1

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
