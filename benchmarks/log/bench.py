"""A log-structured queue with a choice, opened as the server does it: its own threads, the reactor's timers, real files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall, deferLater

from benchmarks.log.plan import Choice, Storage
from benchmarks.log.positions import PositionsInLog, restore
from benchmarks.stage.local_queue import local_settings
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool, Workers
from mailismus.errors import Unavailable
from mailismus.queue.content import IDraft
from mailismus.queue.providers.log.assembly import build
from mailismus.queue.providers.log.control.choices import IPositionsFile, LogChoices
from mailismus.queue.providers.log.format.version import LOG
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.recovery.opening import open_queue
from mailismus.start.clock import WallClock
from mailismus.start.server import Reactor

SIZE_BYTES = 4096
CONTENT = (b"Received: by log.bench.example\r\n\r\n" + b"x" * 62 + b"\r\n") + (b"y" * 62 + b"\r\n") * 64
CONTENT = CONTENT[: SIZE_BYTES - 2] + b"\r\n"
FULL_PAUSE_S = 0.02
MAKING_S = 0.05


def settings_of(directory: Path, choice: Choice, segment_bytes: int) -> QueueSettings:
    """The settings of a queue below this directory."""
    in_spool = choice.storage is Storage.SPOOL
    return local_settings(directory, "log", segment_bytes=segment_bytes, large_bytes=0 if in_spool else 131_072)


class Bench:
    """One queue. `now`: UTC seconds."""

    def __init__(
        self,
        reactor: Reactor,
        directory: Path,
        choice: Choice,
        segment_bytes: int = 32 << 20,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Open it. Raises `StartError`."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        settings, disk = settings_of(directory, choice, segment_bytes), PosixDisk()
        self._reactor, self._threads = reactor, (ThreadPool(reactor, "log"), ThreadPool(reactor, "files", 4))
        root = settings.rootpath
        in_log = PositionsInLog(reactor)
        if choice.has_positions_in_log and os.path.isdir(os.path.join(root, LOG)):
            restore(disk, root, os.path.join(root, LOG))
        opened = open_queue(settings, disk, self._threads[1], WallClock(reactor), os.urandom)
        self.pool = opened.pool

        def positions(disk: IDisk, root: str) -> IPositionsFile:
            return in_log

        choices = LogChoices(
            choice.company_s,
            choice.round_s,
            choice.segments_a_round,
            positions if choice.has_positions_in_log else None,
            choice.ahead_s,
        )
        timers = cast(IReactorTime, reactor)
        self.queue: LogQueue = build(settings, disk, opened, Workers(*self._threads), timers, now, choices)
        in_log.commits = self.queue.commits
        self._making = LoopingCall(self.queue.parts.segments.top_up)
        """Segments are made ahead by rounds; where rounds are rare, or wait for the log, this does it."""
        for thread in self._threads:
            thread.start()
        self._making.start(MAKING_S, now=False)

    async def draft(self) -> IDraft:
        """A draft with the content, as soon as the queue gives one."""
        while True:
            try:
                draft = self.queue.draft()
                break
            except Unavailable:
                await deferLater(self._reactor, FULL_PAUSE_S)
        pause = draft.write(CONTENT)
        if pause is not None:
            await pause
        return draft

    async def content(self, spool_id: int) -> bytes:
        """The content of a message."""
        found = self.queue.read(spool_id)  # type: ignore[arg-type]  # a spool id is a number
        if isinstance(found, bytes):
            return found
        content, parts = await found, []
        while data := await content.next():
            parts.append(data)
        content.close()
        return b"".join(parts)

    async def round(self) -> None:
        """A round of marks, from its beginning to its end."""
        await self.rest()
        self.queue.rounds.run()
        await self.rest()

    async def rest(self) -> None:
        """Wait until no round is under way."""
        while self.queue.rounds.is_busy():
            await deferLater(self._reactor, 0.002)

    async def close(self) -> None:
        """Close it, with its threads."""
        self._making.stop()
        await self.queue.close()
        for thread in self._threads:
            thread.stop()


async def wait_all(waited: list[Deferred[object]]) -> None:
    """Wait until all have fired. Raises what one of them failed with."""
    await gatherResults(waited, consumeErrors=True)
