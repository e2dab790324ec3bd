"""Repair of a stopped log-structured queue, within the frame of every fsck (`queue.fsck.frame`)."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.posix import PosixDisk
from mailismus.journal.writer import RandomBytes
from mailismus.queue.files.directories import make_directories
from mailismus.queue.fsck.finding import Finding, FsckReport
from mailismus.queue.fsck.frame import repair_queue
from mailismus.queue.fsck.refusals import refuse_empty_spool, refuse_other_than_directories, refuse_other_user
from mailismus.queue.providers.log.format.version import OWNERSHIP
from mailismus.queue.providers.log.fsck.check import checking_of, refuse_newer, report_of
from mailismus.queue.providers.log.fsck.clean_stop import opener_without_reactor, start_and_stop
from mailismus.queue.providers.log.fsck.executor import LogRepairExecutor
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind
from mailismus.queue.providers.log.fsck.look import LogLook, sums_of
from mailismus.queue.providers.log.fsck.segments import LogProblem
from mailismus.queue.providers.log.recovery.opening import DIRECTORIES
from mailismus.queue.providers.log.recovery.replay import ReplayedLog
from mailismus.spool.silo import SILO_NAMES

_MAY_FAIL = frozenset(
    kind.code
    for kind in (
        LogFindingKind.WRONG_OWNER,
        LogFindingKind.NOT_PRIVATE,
        LogFindingKind.NO_PLAIN_FILE,
        LogFindingKind.UNREADABLE,
        LogFindingKind.PROBE_LEFT,
        LogFindingKind.STATE_DAMAGED,
        LogFindingKind.STATE_LEFT,
    )
)
"""Kinds of findings whose repair may fail: nothing else of the repair depends on it."""


class LogRepairReport:
    """A repair: an `FsckReport` and its `RepairSteps`."""

    def __init__(self, settings: QueueSettings, disk: IDisk, random_bytes: RandomBytes, now: float) -> None:
        self._settings, self.disk, self._random_bytes, self._now = settings, disk, random_bytes, now
        self.roots = (settings.rootpath, settings.spool.rootpath)
        self._checking = checking_of(settings, disk, now)
        self._damaged: set[int] = set()
        self._renews = False
        self.checked = sums_of(0, 0, 0)

    def __iter__(self) -> Iterator[Finding]:
        return repair_queue(self)

    def refuse(self) -> None:
        refuse_other_than_directories(self.disk, {self.roots[0]: DIRECTORIES, self.roots[1]: SILO_NAMES})
        OWNERSHIP.refuse_unknown(self.disk, self.roots[0])
        refuse_newer(self._checking)
        refuse_empty_spool(self.disk, self._checking.journal_path, self.roots[1])

    def make_executor(self) -> LogRepairExecutor:
        opener = opener_without_reactor(self._settings, self.disk, self._random_bytes)
        return LogRepairExecutor(self.disk, *self.roots, opener, self._now)

    def faults(self, executor: LogRepairExecutor) -> Iterator[LogProblem]:
        def on_log(loaded: ReplayedLog) -> None:
            make_directories(self.disk, self.roots[0], DIRECTORIES)
            make_directories(self.disk, self.roots[1], SILO_NAMES)
            executor.know(loaded)

        look = LogLook(self._checking, on_log)
        yield from look.problems()
        self.checked = look.checked

    def may_fail(self, kind: str) -> bool:
        return kind in _MAY_FAIL

    def finish(self, executor: LogRepairExecutor) -> None:
        executor.finish()
        self._damaged, self._renews = set(executor.evacuated), executor.renews

    def close(self, executor: LogRepairExecutor) -> None:
        executor.close()

    def start_and_stop(self, locks: list[ILock]) -> None:
        start_and_stop(self._settings, self.disk, locks, self._random_bytes, self._now, self._damaged, renews=self._renews)

    def check_again(self) -> Iterator[Finding]:
        return iter(report_of(self._checking))


def repair(settings: QueueSettings, now: float) -> FsckReport:
    """Repair the queue of these settings. Raises `StartError` (77) where the queue belongs to another user."""
    disk = PosixDisk()
    refuse_other_user(disk, settings.rootpath)
    return LogRepairReport(settings, disk, os.urandom, now)
