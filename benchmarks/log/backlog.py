"""A backlog that is delivered while no mail comes: so many deliveries at once, each takes 1 to 5 ms.

A delivery's place is free for the next one as soon as its settlement is asked for; nothing waits for its durability.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from twisted.internet.defer import Deferred

from benchmarks.drain import percentile
from benchmarks.log.bench import Bench, wait_all
from benchmarks.log.mail import ENVELOPE
from benchmarks.measure.disk_bytes import DiskCounter, device_bytes
from mailismus.errors import StorageError
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Message, Submission
from mailismus.start.server import Reactor

MESSAGES, MESSAGES_ALONE, AT_ONCE = 10_000, 1000, 50
LEAST_S, MOST_S = 0.001, 0.005


class Drain:
    """Deliveries of one queue's backlog; `done` fires when all are durable."""

    def __init__(self, reactor: Reactor, waiting: list[Message]) -> None:
        self._reactor, self._waiting = reactor, waiting
        self._left = len(waiting)
        self._random = random.Random(1)
        self.settled_s: list[float] = []
        self.done: Deferred[None] = Deferred()

    def begin(self, bench: Bench, count: int) -> None:
        """Begin so many deliveries; each goes on with the next one."""
        for _ in range(count):
            self._deliver(bench)

    def _deliver(self, bench: Bench) -> None:
        if self._waiting:
            message = self._waiting.pop()
            self._reactor.callLater(self._random.uniform(LEAST_S, MOST_S), self._on_delivered, bench, message)

    def _on_delivered(self, bench: Bench, message: Message) -> None:
        bench.queue.begin_commit((), (), [(message.spool_id, [1])], self, time.perf_counter())
        self._deliver(bench)

    def on_durable(self, marks: Sequence[float], gone: Sequence[Sequence[SpoolId]]) -> None:
        """As `CommitListener`."""
        now = time.perf_counter()
        self.settled_s += [now - began for began in marks]
        self._left -= len(marks)
        if not self._left:
            self.done.callback(None)

    def on_failed(self, marks: Sequence[float], error: StorageError) -> None:
        """As `CommitListener`."""
        raise AssertionError("settlements do not fail") from error


async def measure_drain(reactor: Reactor, bench: Bench, sessions: int, counter: DiskCounter) -> dict[str, float]:
    """The figures of one backlog."""
    await bench.queue.open()
    messages, waiting = (MESSAGES if sessions > 1 else MESSAGES_ALONE), list[Message]()
    for _ in range(0, messages, AT_ONCE):
        await wait_all([Deferred.fromCoroutine(_arrive(bench)) for _ in range(AT_ONCE)])
    while len(waiting) < messages:
        waiting += await bench.queue.take(Area.INCOMING, 1000, time.time(), None)
    drain = Drain(reactor, waiting)
    used, device, began_s = counter.now(), device_bytes(bench.directory), time.perf_counter()
    drain.begin(bench, sessions)
    await drain.done
    took_s, used = time.perf_counter() - began_s, counter.now().minus(used)
    return {
        "deliveries/s": messages / took_s,
        "barriers/delivery": used.barriers / messages,
        "device KiB/delivery": (device_bytes(bench.directory) - device) / messages / 1024,
        "settled ms": percentile(drain.settled_s, 0.5) * 1e3,
        "settled p95 ms": percentile(drain.settled_s, 0.95) * 1e3,
    }


async def _arrive(bench: Bench) -> object:
    return await bench.queue.commit([Submission(await bench.draft(), ENVELOPE, time.time())], ())
