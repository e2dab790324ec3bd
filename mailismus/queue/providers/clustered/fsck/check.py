"""Check of a stopped clustered queue, within the frame of every fsck (`queue.fsck.frame`). It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.files.locations import QUEUE_DIRECTORIES
from mailismus.queue.fsck.finding import Checked, Finding, FsckReport
from mailismus.queue.fsck.frame import check_queue
from mailismus.queue.fsck.local.target import Checking, DirectoryLayout
from mailismus.queue.providers.clustered.format.cluster import SUFFIX as CLUSTER_SUFFIX
from mailismus.queue.providers.clustered.format.version import OWNERSHIP
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind
from mailismus.queue.providers.clustered.fsck.look import Look
from mailismus.queue.providers.clustered.fsck.refusals import refuse_newer_formats
from mailismus.queue.providers.clustered.recovery.directories import areas_of


def layout_of(queue_path: str, disk: IDisk) -> DirectoryLayout:
    """Return what a clustered queue's directory has, this one's areas by its mark."""
    needed = frozenset(area.value for area in areas_of(queue_path, disk))
    return DirectoryLayout(QUEUE_DIRECTORIES, (CLUSTER_SUFFIX,), FindingKind, needed=needed)


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
        refuse_newer_formats(self._checking)

    def not_locked(self, path: str, why: str) -> Finding:
        return FindingKind.NOT_LOCKED.finding(path, None, {"why": why})

    def findings(self) -> Iterator[Finding]:
        for found in self._look.problems():
            if found.finding is not None:
                yield found.finding


def checking_of(settings: QueueSettings, disk: IDisk, now: float) -> Checking:
    """What to check for a server that is to start here with these settings."""
    return Checking(
        disk,
        settings.rootpath,
        settings.spool.rootpath,
        layout_of(settings.rootpath, disk),
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
    disk = PosixDisk(Access.READ_ONLY)
    return CheckReport(Checking(disk, queue_path, spool_path, layout_of(queue_path, disk), now))
