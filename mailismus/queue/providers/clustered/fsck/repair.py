"""Repair of a stopped clustered queue, within the frame of every fsck (`queue.fsck.frame`).

Each problem is repaired as it is found. Then records go into the journal, and replaced files are removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.posix import PosixDisk
from mailismus.journal.writer import RandomBytes
from mailismus.queue.fsck.finding import Finding, FsckReport
from mailismus.queue.fsck.frame import repair_queue
from mailismus.queue.fsck.local.segments import JournalState
from mailismus.queue.fsck.refusals import refuse_other_user
from mailismus.queue.providers.clustered.fsck.check import checking_of, report_of
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind, Problem
from mailismus.queue.providers.clustered.fsck.look import Look, sums_of
from mailismus.queue.providers.clustered.fsck.refusals import refuse_repair
from mailismus.queue.providers.clustered.fsck.repairs.clean_stop import opener_without_reactor, start_and_stop
from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor
from mailismus.queue.providers.clustered.recovery.directories import make_queue
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue

_MAY_FAIL = frozenset(
    kind.code
    for kind in (
        FindingKind.WRONG_OWNER,
        FindingKind.NOT_PRIVATE,
        FindingKind.NO_PLAIN_FILE,
        FindingKind.UNREADABLE,
        FindingKind.PROBE_LEFT,
        FindingKind.STATE_DAMAGED,
        FindingKind.STATE_LEFT,
    )
)
"""Kinds of findings whose repair may fail: nothing else of the repair depends on it."""


class RepairReport:
    """A repair: an `FsckReport` and its `RepairSteps`."""

    def __init__(self, settings: QueueSettings, disk: IDisk, random_bytes: RandomBytes, now: float) -> None:
        self._settings = settings
        self.disk = disk
        self.roots = (settings.rootpath, settings.spool.rootpath)
        self._random_bytes = random_bytes
        self._now = now
        self._checking = checking_of(settings, disk, now)
        self.checked = sums_of(0, 0, 0, 0)

    def __iter__(self) -> Iterator[Finding]:
        return repair_queue(self)

    def refuse(self) -> None:
        refuse_repair(self._checking)

    def make_executor(self) -> RepairExecutor:
        opener = opener_without_reactor(self._settings, self.disk, self._random_bytes)
        return RepairExecutor(self.disk, *self.roots, opener, self._now)

    def faults(self, executor: RepairExecutor) -> Iterator[Problem]:
        def on_journal(journal: JournalState[ReplayedQueue]) -> None:
            make_queue(self._settings, self.disk)
            executor.loaded = journal.loaded

        look = Look(self._checking, on_journal)
        yield from look.problems()
        self.checked = look.checked

    def may_fail(self, kind: str) -> bool:
        return kind in _MAY_FAIL

    def finish(self, executor: RepairExecutor) -> None:
        executor.finish()

    def close(self, executor: RepairExecutor) -> None:
        executor.close()

    def start_and_stop(self, locks: list[ILock]) -> None:
        start_and_stop(self._settings, self.disk, locks, self._random_bytes, self._now)

    def check_again(self) -> Iterator[Finding]:
        return iter(report_of(self._checking))


def repair(settings: QueueSettings, now: float) -> FsckReport:
    """Repair the queue of these settings. Raises `StartError` (77) where the queue belongs to another user."""
    disk = PosixDisk()
    refuse_other_user(disk, settings.rootpath)
    return RepairReport(settings, disk, os.urandom, now)
