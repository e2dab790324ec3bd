"""Retries of all entries of a queue, through its seam: each is taken when it is due, and deferred again; no content is read,
as where connections are refused. The queue's bytes on the disk meanwhile, against its live bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater

from mailismus.mail.ids import QueueId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, IQueue, Message, Settlement
from mailismus.start.server import Reactor

AT_ONCE = 500
"""Entries that are tried at a time."""
LOOK_S = 2.0
PAUSE_S = 0.2
WAIT_S = 60.0
"""Until an entry that came too early is offered again."""
REST_S = 20.0
"""A queue whose disk use has not changed for so long is at rest."""
LAST_S = 14_400.0
"""For which the last retry defers: the queue rests then."""
MIB = 1 << 20


class DiskUse:
    """Bytes that the files below some directories have on the disk; looked at now and then."""

    def __init__(self, directories: tuple[Path, ...]) -> None:
        self._directories = directories
        self._next_s = 0.0
        self.most = 0

    def now(self) -> int:
        """Look."""
        used = 0
        for directory in self._directories:
            for path in directory.rglob("*"):
                try:
                    used += path.lstat().st_blocks * 512
                except FileNotFoundError:
                    continue  # it was removed meanwhile
        self.most = max(self.most, used)
        return used

    def look(self) -> None:
        """Look, if the last time is some seconds ago."""
        if time.monotonic() >= self._next_s:
            self.now()
            self._next_s = time.monotonic() + LOOK_S


@attrs.frozen
class Retrying:
    """The retries. `spare_bytes`: of files that a queue may have beside twice its live bytes."""

    queue: IQueue
    reactor: Reactor
    disk: DiskUse
    entries: int
    due_in_s: float
    spare_bytes: int
    reply: Reply
    say: Callable[[str], None]

    async def run(self, count: int) -> None:
        """So many, one after the other, and say what the queue takes before and after each. Raises `RuntimeError` where an
        entry is missing."""
        await self._tell("filled")
        for attempts in range(1, count + 1):
            while (due_at := self.queue.next_due(Area.DEFERRED)) is not None and due_at > time.time():
                await deferLater(self.reactor, PAUSE_S)
            began_s = time.monotonic()
            await self._retry(attempts, LAST_S if attempts == count else self.due_in_s)
            self.say(f"retry {attempts}: {self.entries} entries in {time.monotonic() - began_s:.0f} s")
            await self._tell(f"after retry {attempts}")

    async def _retry(self, attempts: int, due_in_s: float) -> None:
        tried = early = 0
        while tried < self.entries:
            self.disk.look()
            messages = await self.queue.take(Area.DEFERRED, AT_ONCE, time.time(), None)
            if not messages:
                await deferLater(self.reactor, PAUSE_S)
                continue
            done = list[Deferred[Any]]()
            for one in messages:
                if any(entry.attempts > attempts for entry in one.entries):  # due again before all are tried
                    self.queue.give_back(one.queue_ids(), time.time() + WAIT_S)
                    early += len(one.entries)
                    continue
                done.append(self.queue.commit((), self._deferred(one, attempts, due_in_s)))
                tried += len(one.entries)
            await gatherResults(done)
        if early:
            self.say(f"{early} times an entry was due again before all had been tried: it waited {WAIT_S:g} s")

    def _deferred(self, message: Message, attempts: int, due_in_s: float) -> list[Settlement]:
        due_at = time.time() + due_in_s
        return [
            Settlement(QueueId(message.spool_id, entry.number), Area.DEFERRED, due_at, attempts + 1, self.reply, entry.host)
            for entry in message.entries
        ]

    async def _tell(self, when: str) -> None:
        """Of the moment, and of the queue at rest."""
        used, most = self.disk.now(), self.disk.most
        still_s, rests = 0.0, used
        while still_s < REST_S:
            await deferLater(self.reactor, LOOK_S)
            before, rests = rests, self.disk.now()
            still_s = still_s + LOOK_S if rests == before else 0.0
        summary = await self.queue.summary()
        entries = sum(area.entries for area in summary.areas.values())
        live = sum(area.stored_bytes for area in summary.areas.values())
        if entries != self.entries:
            raise RuntimeError(f"{entries} entries of {self.entries} are there: {summary}")
        limit = 2 * live + self.spare_bytes
        self.say(
            f"{when}: {entries} entries, live {live // MIB} MiB, on the disk {used // MIB} MiB, at rest {rests // MIB}, "
            f"at most {max(most, self.disk.most) // MIB} so far; limit {limit // MIB}, {used / live:.3f} of the live bytes"
        )
