"""Repair of a stopped queue of chunks, within the frame of every fsck (`queue.fsck.frame`)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from twisted.internet.task import Clock

from mailismus.chunks.generator import process_generator
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.posix import PosixDisk
from mailismus.errors import Unavailable
from mailismus.queue.files.writers import lock_out_writers
from mailismus.queue.fsck.finding import Finding, FsckReport
from mailismus.queue.fsck.frame import repair_queue
from mailismus.queue.fsck.refusals import refuse_other_than_directories, refuse_other_user
from mailismus.queue.fsck.turns import TurnWorker, turn_until, wait_for
from mailismus.queue.providers.chunk.assembly import build
from mailismus.queue.providers.chunk.control.workers import ChunkWorkers
from mailismus.queue.providers.chunk.format.version import OWNERSHIP
from mailismus.queue.providers.chunk.fsck.check import checking_of, report_of
from mailismus.queue.providers.chunk.fsck.executor import ChunkRepairExecutor
from mailismus.queue.providers.chunk.fsck.kinds import ChunkFindingKind
from mailismus.queue.providers.chunk.fsck.look import LAYOUT, ChunkLook, sums_of
from mailismus.queue.providers.chunk.fsck.numbers import ChunkProblem
from mailismus.queue.providers.chunk.recovery.directories import read_split
from mailismus.queue.providers.chunk.recovery.opening import open_locked

_MAY_FAIL = frozenset(
    kind.code
    for kind in (
        ChunkFindingKind.WRONG_OWNER,
        ChunkFindingKind.NOT_PRIVATE,
        ChunkFindingKind.NO_PLAIN_FILE,
        ChunkFindingKind.UNREADABLE,
        ChunkFindingKind.STATE_DAMAGED,
        ChunkFindingKind.STATE_LEFT,
    )
)
"""Kinds of findings whose repair may fail: nothing else of the repair depends on it."""


class ChunkRepairReport:
    """A repair: an `FsckReport` and its `RepairSteps`."""

    def __init__(self, settings: QueueSettings, disk: IDisk, now: float) -> None:
        self._settings, self.disk, self._now = settings, disk, now
        self.roots = (settings.rootpath,)
        self._checking = checking_of(settings, disk, now)
        self.checked = sums_of(0, 0)
        self._writers: ILock | None = None

    def __iter__(self) -> Iterator[Finding]:
        return repair_queue(self)

    def refuse(self) -> None:
        refuse_other_than_directories(self.disk, {self.roots[0]: LAYOUT.directories})
        OWNERSHIP.refuse_unknown(self.disk, self.roots[0])

    def make_executor(self) -> ChunkRepairExecutor:
        self._writers = lock_out_writers(self.disk, self.roots[0], time.sleep)
        return ChunkRepairExecutor(self.disk, self.roots[0], self._now)

    def faults(self, executor: ChunkRepairExecutor) -> Iterator[ChunkProblem]:
        look = ChunkLook(self._checking)
        yield from look.problems()
        self.checked = look.checked

    def may_fail(self, kind: str) -> bool:
        return kind in _MAY_FAIL

    def finish(self, executor: ChunkRepairExecutor) -> None:
        executor.finish_files()

    def close(self, executor: ChunkRepairExecutor) -> None:
        writers, self._writers = self._writers, None
        if writers is not None:
            writers.release()

    def start_and_stop(self, locks: list[ILock]) -> None:
        clock = Clock()
        worker = TurnWorker(clock)
        # What the queue says itself counts: another number in the configuration is for the server's start to refuse.
        split = read_split(self.disk, self.roots[0]) or self._settings.conf_split
        opened = open_locked(self._settings, self.disk, split, locks)
        try:
            workers, seconds = ChunkWorkers(worker, worker, worker), lambda: self._now + clock.seconds()
            queue = build(
                *(self._settings, self.disk, opened, workers, clock, seconds),
                lambda recipient: False,
                process_generator(),
            )
            wait_for(clock, queue.open())
            wait_for(clock, queue.parts.scanning.wait())
            gaps, work = queue.parts.scanning.gaps(), queue.parts.work
            if gaps:
                raise Unavailable(f"the start at the end can't read the queue: {gaps[0].reason}")
            turn_until(clock, lambda: work.is_idle or work.failures > 0)
            if work.failures:
                raise Unavailable(f"the start at the end can't clean up: {work.trouble}")
            wait_for(clock, queue.close())
        finally:
            opened.release()

    def check_again(self) -> Iterator[Finding]:
        return iter(report_of(self._checking))


def repair(settings: QueueSettings, now: float) -> FsckReport:
    """Repair the queue of these settings. Raises `StartError` (77) where the queue belongs to another user."""
    disk = PosixDisk()
    refuse_other_user(disk, settings.rootpath)
    return ChunkRepairReport(settings, disk, now)
