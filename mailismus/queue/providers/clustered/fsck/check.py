"""fsck: checks a stopped queue as a whole, and repairs it.

    check:   locks, names, journal, clusters, spool; changes nothing, does not even create a lock file
    repair:  the same order, each problem repaired as it is found
             -> records into the journal -> replaced files removed -> one start and clean stop -> a second check

The start at the end is the server's own; it repairs what findings leave to it. The second check proves the repair.

*Rules*: bytes are copied to `corrupt/` before they are changed. A repair that was interrupted anywhere can be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import attrs
from twisted.internet.task import Clock

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock, NameKind
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import StartError, Unavailable
from mailismus.journal.writer import RandomBytes
from mailismus.queue.files.directories import LOCK
from mailismus.queue.files.locations import QUEUE_DIRECTORIES
from mailismus.queue.fsck_finding import Checked, Done, Finding, FsckReport, Severity
from mailismus.queue.providers.clustered.fsck.evidence.history import JournalHistory
from mailismus.queue.providers.clustered.fsck.evidence.target import Checking
from mailismus.queue.providers.clustered.fsck.findings.clusters import Clusters, check_clusters
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind, Problem, problem
from mailismus.queue.providers.clustered.fsck.findings.names import NameCheck
from mailismus.queue.providers.clustered.fsck.findings.segments import JournalState, check_journal
from mailismus.queue.providers.clustered.fsck.findings.spool import SpoolCheck
from mailismus.queue.providers.clustered.fsck.findings.state_files import check_state_files
from mailismus.queue.providers.clustered.fsck.repairs.clean_stop import TurnWorker, start_and_stop
from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor
from mailismus.queue.providers.clustered.recovery.newer_formats import refuse_newer_queue, refuse_newer_spool
from mailismus.queue.providers.clustered.recovery.opening import make_queue
from mailismus.queue.providers.clustered.recovery.ownership import refuse_unknown
from mailismus.spool.silo import SILO_NAMES

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
        yield from check_state_files(self._checking, names)
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
    """A check, which changes nothing."""

    def __init__(self, checking: Checking) -> None:
        self._checking = checking
        self._look = Look(checking)

    @property
    def checked(self) -> tuple[Checked, ...]:
        """How much was checked."""
        return self._look.checked

    def __iter__(self) -> Iterator[Finding]:
        """All findings. Raises `StartError` (75) when a server runs on the queue, `NewerFormat`, OSError."""
        checking = self._checking
        refuse_unknown(checking.disk, checking.queue_path)
        locks: list[ILock] = []
        try:
            for root in (checking.queue_path, checking.spool_path):
                lock = _lock_to_look(checking.disk, root)
                if isinstance(lock, Problem):
                    assert lock.finding is not None
                    yield lock.finding
                elif lock is not None:
                    locks.append(lock)
            _refuse_newer_formats(checking)
            for found in self._look.problems():
                if found.finding is not None:
                    yield found.finding
        finally:
            for held in locks:
                held.release()


def _lock_to_look(disk: IDisk, root: str) -> ILock | Problem | None:
    """The lock, or a problem where it can't be taken; None: there is no lock file, so no server has ever run here."""
    path = os.path.join(root, LOCK)
    if not disk.exists(path) or disk.describe(path).kind is not NameKind.FILE:
        return None
    try:
        lock = disk.lock(path)
    except OSError as error:
        return problem(FindingKind.NOT_LOCKED, path, why=error.strerror or str(error))
    if lock is None:
        raise _held_error(root)
    return lock


def _held_error(root: str) -> StartError:
    text = f"a server or another fsck holds {root}: stop it first, or use `mailismus queue` to look at a running server"
    return StartError(os.EX_TEMPFAIL, text)


class RepairReport:
    """A repair."""

    def __init__(self, settings: QueueSettings, disk: IDisk, random_bytes: RandomBytes, now: float) -> None:
        self._settings = settings
        self._disk = disk
        self._random_bytes = random_bytes
        self._now = now
        self._checking = checking_of(settings, disk, now)
        self._locks: dict[str, ILock] = {}
        self.checked = _checked(0, 0, 0, 0)

    def __iter__(self) -> Iterator[Finding]:
        """All findings, each with what was done; then those of a second check that still need an administrator. Raises
        `StartError` (75: a server runs; 77: wrong user), `StorageError`, OSError: then the repair can be repeated."""
        _refuse_other_than_directories(self._settings, self._disk)
        refuse_unknown(self._disk, self._settings.rootpath)
        _refuse_newer_formats(self._checking)
        _refuse_empty_spool(self._settings, self._disk)
        try:
            yield from self._repair()
            self._lock()  # a lock that was no file, and has been moved away
        except BaseException:
            for lock in self._locks.values():
                lock.release()
            raise
        locks = [self._locks[root] for root in (self._settings.rootpath, self._settings.spool.rootpath)]
        start_and_stop(self._settings, self._disk, locks, self._random_bytes, self._now)
        for left in CheckReport(self._checking):
            if left.severity is not Severity.NOTE:
                yield attrs.evolve(left, done=Done.FAILED, error="still there after the repair")

    def _repair(self) -> Iterator[Finding]:
        self._lock()
        clock = Clock()
        executor = RepairExecutor(self._settings, self._disk, TurnWorker(clock), clock, self._random_bytes, self._now)

        def on_journal(journal: JournalState) -> None:
            make_queue(self._settings, self._disk)
            executor.loaded = journal.loaded

        try:
            look = Look(self._checking, on_journal)
            for found in look.problems():
                done, error = _mend(found, executor)
                if found.finding is not None:
                    yield attrs.evolve(found.finding, done=done, error=error)
            self.checked = look.checked
            executor.finish()
        finally:
            executor.close()

    def _lock(self) -> None:
        """Take the locks that are not held yet. One that is no file is a finding, and moved away by its repair."""
        for root in (self._settings.rootpath, self._settings.spool.rootpath):
            path = os.path.join(root, LOCK)
            if root in self._locks or (self._disk.exists(path) and self._disk.describe(path).kind is not NameKind.FILE):
                continue
            lock = self._disk.lock(path)
            if lock is None:
                raise _held_error(root)
            self._locks[root] = lock


def _refuse_newer_formats(checking: Checking) -> None:
    """Refuse files of a newer format, which would look like damage. Raises `NewerFormat`, having changed nothing."""
    refuse_newer_queue(checking.disk, checking.queue_path)
    refuse_newer_spool(checking.disk, checking.spool_path)


def _refuse_other_than_directories(settings: QueueSettings, disk: IDisk) -> None:
    """Refuse symbolic links: a write below one would go wherever it leads. Raises `StartError`, having changed nothing."""
    for root, names in ((settings.rootpath, QUEUE_DIRECTORIES), (settings.spool.rootpath, SILO_NAMES)):
        for path in (root, *(os.path.join(root, name) for name in names)):
            if disk.exists(path) and (kind := disk.describe(path).kind) is not NameKind.DIRECTORY:
                text = f"{path} is {kind.value}, not a directory: put the directory back; nothing was changed"
                raise StartError(os.EX_NOPERM, text)


def _refuse_empty_spool(settings: QueueSettings, disk: IDisk) -> None:
    """Refuse a spool that is not mounted: all messages would look lost, and all entries would become bounces. Raises
    `StartError`, having changed nothing."""
    journal, spool = os.path.join(settings.rootpath, "journal"), settings.spool.rootpath
    silos = [os.path.join(spool, name) for name in SILO_NAMES]
    if any(disk.exists(silo) for silo in silos) or not disk.exists(journal) or not disk.list_directory(journal):
        return
    text = (
        f"{spool} is empty, but the queue is not new: mount the spool, or bring it back; if it is really gone, make the "
        f"directory {silos[0]} and begin again: then messages that are nowhere else are given up"
    )
    raise StartError(os.EX_CONFIG, text)


def _mend(found: Problem, executor: RepairExecutor) -> tuple[Done, str]:
    """Repair one problem. Raises `StorageError` where the rest of the repair depends on it."""
    severity = found.finding.severity if found.finding is not None else Severity.REPAIRABLE
    if found.mend is None:
        return (Done.NOTHING if severity is Severity.NOTE else Done.BY_START), ""
    try:
        found.mend(executor)
    except OSError as error:
        why = error.strerror or str(error)
        if found.finding is None or found.finding.kind not in _MAY_FAIL:
            where = found.finding.path if found.finding is not None else "a line"
            raise Unavailable(f"{where} can't be repaired ({why}); what was repaired before it is, begin again") from error
        return Done.FAILED, why
    return Done.REPAIRED, ""


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
    owner = disk.describe(settings.rootpath).owner
    if owner != os.geteuid():
        text = (
            f"{settings.rootpath} belongs to user {owner}: repair it as that user, or files would be made that it can't read"
        )
        raise StartError(os.EX_NOPERM, text)
    return RepairReport(settings, disk, os.urandom, now)
