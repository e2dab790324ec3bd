"""fsck of a clustered queue: its findings step by step, within the frame of every fsck (`queue.fsck.frame`).

    names -> journal -> clusters -> spool

A repair repairs each problem as it is found; then records go into the journal, and replaced files are removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from twisted.internet.task import Clock

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.disk.posix import Access, PosixDisk
from mailismus.journal.writer import RandomBytes
from mailismus.queue.files.locations import QUEUE_DIRECTORIES
from mailismus.queue.files.newer_formats import refuse_newer_spool
from mailismus.queue.fsck.finding import Checked, Finding, FsckReport
from mailismus.queue.fsck.frame import check_queue, repair_queue
from mailismus.queue.fsck.refusals import refuse_empty_spool, refuse_other_than_directories, refuse_other_user
from mailismus.queue.fsck.turns import TurnWorker
from mailismus.queue.providers.clustered.format.version import OWNERSHIP
from mailismus.queue.providers.clustered.fsck.evidence.history import JournalHistory
from mailismus.queue.providers.clustered.fsck.evidence.target import Checking
from mailismus.queue.providers.clustered.fsck.findings.clusters import Clusters, check_clusters
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind, Problem
from mailismus.queue.providers.clustered.fsck.findings.names import NameCheck
from mailismus.queue.providers.clustered.fsck.findings.segments import JournalState, check_journal
from mailismus.queue.providers.clustered.fsck.findings.spool import SpoolCheck
from mailismus.queue.providers.clustered.fsck.repairs.clean_stop import start_and_stop
from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor
from mailismus.queue.providers.clustered.recovery.directories import make_queue
from mailismus.queue.providers.clustered.recovery.newer_formats import refuse_newer_queue
from mailismus.spool.silo import SILO_NAMES

_MAY_FAIL = frozenset(
    kind.code
    for kind in (
        FindingKind.WRONG_OWNER,
        FindingKind.NOT_PRIVATE,
        FindingKind.NO_PLAIN_FILE,
        FindingKind.UNREADABLE,
        FindingKind.PROBE_LEFT,
    )
)
"""Kinds of findings whose repair may fail: nothing else of the repair depends on it."""


class Look:
    """One check, step by step. `on_journal` is called after the findings of the journal and before all others."""

    def __init__(self, checking: Checking, on_journal: Callable[[JournalState], None] | None = None) -> None:
        self._checking = checking
        self._on_journal = on_journal
        self.checked = _checked(0, 0, 0, 0)

    def problems(self) -> Iterator[Problem]:
        """All problems. Raises OSError where the check itself can't go on."""
        names = NameCheck(self._checking)
        yield from names.check_directories()
        for found in check_journal(self._checking, names):
            if isinstance(found, Problem):
                yield found
                continue
            try:
                yield from self._behind(found, names)
            finally:
                found.close()

    def _behind(self, journal: JournalState, names: NameCheck) -> Iterator[Problem]:
        if self._on_journal is not None:
            self._on_journal(journal)
        loaded = journal.loaded
        history = JournalHistory(loaded.journal)
        for found in check_clusters(self._checking, names, loaded, history):
            if isinstance(found, Clusters):
                spool = SpoolCheck(self._checking, names, journal, found, history)
                yield from spool.check()
                segments = len(loaded.journal.used) + len(loaded.journal.others)
                self.checked = _checked(segments, found.count, spool.entries, spool.files)
            else:
                yield found


def _checked(segments: int, clusters: int, entries: int, message_files: int) -> tuple[Checked, ...]:
    return (
        Checked("segments", segments, "segment", "segments"),
        Checked("clusters", clusters, "cluster", "clusters"),
        Checked("entries", entries, "live entry", "live entries"),
        Checked("message_files", message_files, "message file", "message files"),
    )


class CheckReport:
    """A check, which changes nothing: an `FsckReport` and its `CheckSteps`."""

    def __init__(self, checking: Checking) -> None:
        self._checking = checking
        self._look = Look(checking)
        self.disk = checking.disk
        self.roots = (checking.queue_path, checking.spool_path)

    @property
    def checked(self) -> tuple[Checked, ...]:
        """How much was checked."""
        return self._look.checked

    def __iter__(self) -> Iterator[Finding]:
        return check_queue(self)

    def refuse_unknown(self) -> None:
        OWNERSHIP.refuse_unknown(self.disk, self._checking.queue_path)

    def refuse_newer(self) -> None:
        _refuse_newer_formats(self._checking)

    def not_locked(self, path: str, why: str) -> Finding:
        return FindingKind.NOT_LOCKED.finding(path, None, {"why": why})

    def findings(self) -> Iterator[Finding]:
        for found in self._look.problems():
            if found.finding is not None:
                yield found.finding


class RepairReport:
    """A repair: an `FsckReport` and its `RepairSteps`."""

    def __init__(self, settings: QueueSettings, disk: IDisk, random_bytes: RandomBytes, now: float) -> None:
        self._settings = settings
        self.disk = disk
        self.roots = (settings.rootpath, settings.spool.rootpath)
        self._random_bytes = random_bytes
        self._now = now
        self._checking = checking_of(settings, disk, now)
        self.checked = _checked(0, 0, 0, 0)

    def __iter__(self) -> Iterator[Finding]:
        return repair_queue(self)

    def refuse(self) -> None:
        queue_path, spool_path = self.roots
        refuse_other_than_directories(self.disk, {queue_path: QUEUE_DIRECTORIES, spool_path: SILO_NAMES})
        OWNERSHIP.refuse_unknown(self.disk, queue_path)
        _refuse_newer_formats(self._checking)
        refuse_empty_spool(self.disk, self._checking.journal_path, spool_path)

    def make_executor(self) -> RepairExecutor:
        clock = Clock()
        return RepairExecutor(self._settings, self.disk, TurnWorker(clock), clock, self._random_bytes, self._now)

    def faults(self, executor: RepairExecutor) -> Iterator[Problem]:
        def on_journal(journal: JournalState) -> None:
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
        return iter(CheckReport(self._checking))


def _refuse_newer_formats(checking: Checking) -> None:
    """Refuse files of a newer format, which would look like damage. Raises `NewerFormat`, having changed nothing."""
    refuse_newer_queue(checking.disk, checking.queue_path)
    refuse_newer_spool(checking.disk, checking.spool_path)


def checking_of(settings: QueueSettings, disk: IDisk, now: float) -> Checking:
    """What to check for a server that is to start here with these settings."""
    return Checking(
        disk,
        settings.rootpath,
        settings.spool.rootpath,
        now,
        hardlinks=settings.spool.hardlinks,
        largest_cluster=settings.maxclustersize,
        is_here=True,
    )


def check_configured(settings: QueueSettings, now: float) -> FsckReport:
    """Check the queue of these settings."""
    return CheckReport(checking_of(settings, PosixDisk(Access.READ_ONLY), now))


def check_copied(queue_path: str, spool_path: str, now: float) -> FsckReport:
    """Check a queue copied from elsewhere."""
    return CheckReport(Checking(PosixDisk(Access.READ_ONLY), queue_path, spool_path, now))


def repair(settings: QueueSettings, now: float) -> FsckReport:
    """Repair the queue of these settings. Raises `StartError` (77) where the queue belongs to another user."""
    disk = PosixDisk()
    refuse_other_user(disk, settings.rootpath)
    return RepairReport(settings, disk, os.urandom, now)
