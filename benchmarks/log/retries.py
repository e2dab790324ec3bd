"""Hours of deferrals on a virtual clock: mail that comes, fails, and is tried again by the default retry rule.

Each virtual minute some messages arrive and are tried; all fail. Of what is due again a quarter is delivered, its content
read; the rest is deferred further. Sessions are attempts that end together: their commits may share a barrier. A failure
comes before any content is asked for, as of a host that can't be reached. No delivery waits so that others share its barrier
(`company_s` 0): what is compared is work, not waiting.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from twisted.internet.defer import Deferred

from benchmarks.log.bench import CONTENT, SIZE_BYTES, Bench, wait_all
from benchmarks.log.mail import ENVELOPE
from benchmarks.log.plan import Choice, Storage
from benchmarks.measure.costs import pss_bytes
from benchmarks.measure.disk_bytes import DiskCounter, device_bytes, used_bytes
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message, Placement, Settlement, Submission
from mailismus.start.server import Reactor

DELAYS_S = (900.0, 1800.0, 7200.0, 14400.0)
STEP_S, ROUND_STEPS = 60.0, 30
DELIVERED_SHARE = 0.25
SEGMENT_BYTES = 1 << 20
"""So small that some tens of MB are as many segments as gigabytes are with the default."""
REPLY, HOST = Reply(451, b"4.4.1", b"connect to 127.0.0.1 failed: Connection refused"), b"127.0.0.1[127.0.0.1]:25"


class _Clock:
    """The virtual clock."""

    def __init__(self) -> None:
        self.at = time.time()

    def now(self) -> float:
        """UTC seconds."""
        return self.at


class Retries:
    """The load. With several queues the first one has new mail, and each other one what waits for one retry interval."""

    def __init__(self, reactor: Reactor, directory: Path, choice: Choice) -> None:
        self._clock = _Clock()
        self._storage = choice.storage
        count = 1 + len(DELAYS_S) if choice.storage is Storage.SEVERAL else 1
        self.benches = [
            Bench(reactor, directory / f"log-{index}", choice, SEGMENT_BYTES, self._clock.now) for index in range(count)
        ]
        self._random = random.Random(1)
        self.live = 0
        self.attempts = 0

    async def run(self, steps: int, arrivals: int, sessions: int) -> None:
        """So many virtual minutes. Raises: StorageError."""
        for step in range(steps):
            self._clock.at += STEP_S
            for first in range(0, arrivals, sessions):
                await wait_all([self._arrive() for _ in range(first, min(first + sessions, arrivals))])
            for index, bench in enumerate(self.benches):
                for area in (Area.INCOMING, Area.DEFERRED):
                    while messages := await self._due(bench, area):
                        for at in range(0, len(messages), sessions):
                            await wait_all([self._attempt(index, one) for one in messages[at : at + sessions]])
                if step % ROUND_STEPS == 0:
                    await bench.round()

    async def _due(self, bench: Bench, area: Area) -> list[Message]:
        """What is due of an area, a part of it: none is left when it is empty."""
        queue = bench.queue
        for _ in range(1000):
            messages = await queue.take(area, 500, self._clock.at, None)
            due_at = queue.next_due(area)
            if messages or due_at is None or due_at > self._clock.at:
                return messages
        raise AssertionError("something is due for ever")

    def _arrive(self) -> Deferred[object]:
        return Deferred.fromCoroutine(self._arriving())

    async def _arriving(self) -> None:
        bench = self.benches[0]
        await bench.queue.commit([Submission(await bench.draft(), ENVELOPE, self._clock.at)], ())
        self.live += 1

    def _attempt(self, index: int, message: Message) -> Deferred[object]:
        return Deferred.fromCoroutine(self._attempting(index, message))

    async def _attempting(self, index: int, message: Message) -> None:
        """One attempt, and its end."""
        self.attempts += 1
        bench, entry = self.benches[index], message.entries[0]
        queue_id = QueueId(message.spool_id, entry.number)
        if entry.attempts and self._random.random() < DELIVERED_SHARE:
            if await bench.content(message.spool_id) != CONTENT:
                raise AssertionError("a content is not what was sent")
            await bench.queue.commit((), [Settlement(queue_id, None)])
            self.live -= 1
            return
        due_at = self._clock.at + DELAYS_S[min(entry.attempts, len(DELAYS_S) - 1)]
        if self._storage in (Storage.REFERRED, Storage.SPOOL):
            settlement = Settlement(queue_id, Area.DEFERRED, due_at, entry.attempts + 1, REPLY, HOST)
            await bench.queue.commit((), [settlement])
        else:
            await self._copy(index, message.spool_id, entry, due_at)

    async def _copy(self, index: int, spool_id: SpoolId, entry: Entry, due_at: float) -> None:
        """Defer by a message of its own, here or in the queue of the interval, in place of the former one."""
        bench, ended = self.benches[index], Settlement(QueueId(spool_id, entry.number), None)
        if await bench.content(spool_id) != CONTENT:
            raise AssertionError("a content is not what was sent")
        target = self.benches[min(entry.attempts + 1, len(self.benches) - 1)]
        placement = Placement(1, Area.DEFERRED, due_at, entry.attempts + 1, REPLY, HOST)
        submission = Submission(await target.draft(), ENVELOPE, self._clock.at, (placement,))
        if target is bench:
            await bench.queue.commit([submission], [ended])
        else:
            await target.queue.commit([submission], ())
            await bench.queue.commit((), [ended])  # twice in the queue until then, never lost

    async def close(self) -> None:
        """Close all queues."""
        for bench in self.benches:
            await bench.close()


async def measure_retries(
    reactor: Reactor, directory: Path, choice: Choice, sessions: int, counter: DiskCounter
) -> dict[str, float]:
    """The figures of some virtual hours: fewer with one session, which pays a barrier for each attempt."""
    steps, arrivals = (360, 10) if sessions > 1 else (360, 1)
    retries = Retries(reactor, directory, choice)
    for bench in retries.benches:
        await bench.queue.open()
    used, device, began_s = counter.now(), device_bytes(directory), time.perf_counter()
    await retries.run(steps, arrivals, sessions)
    took_s, used = time.perf_counter() - began_s, counter.now().minus(used)
    device = device_bytes(directory) - device
    for bench in retries.benches:
        await bench.round()
    attempts, live = max(1, retries.attempts), retries.live * SIZE_BYTES
    on_disk = used_bytes(directory) - sum(len(bench.pool) * SEGMENT_BYTES for bench in retries.benches)
    figures = {
        "attempts/s": attempts / took_s,
        "barriers/attempt": used.barriers / attempts,
        "KiB written/attempt": used.written_bytes / attempts / 1024,
        "device KiB/attempt": device / attempts / 1024,
        "KiB read/attempt": used.read_bytes / attempts / 1024,
        "live MiB": live / 2**20,
        "used MiB": on_disk / 2**20,
        "used/live": on_disk / max(1, live),
        "PSS MB": pss_bytes([os.getpid()]) / 1e6,
    }
    await retries.close()
    return figures
