"""Check of a stopped clustered queue, within the frame of every fsck (`queue.fsck.frame`). It changes nothing."""

from __future__ import annotations

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.files.locations import QUEUE_DIRECTORIES
from mailismus.queue.fsck.finding import FsckReport
from mailismus.queue.fsck.local.report import LocalCheckReport
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


def report_of(checking: Checking) -> LocalCheckReport:
    """Return the report of a check, which is made as it is read."""
    return LocalCheckReport(checking, Look, OWNERSHIP, refuse_newer_formats)


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
    return report_of(checking_of(settings, PosixDisk(Access.READ_ONLY), now))


def check_copied(queue_path: str, spool_path: str, now: float) -> FsckReport:
    """Check a queue copied from elsewhere."""
    disk = PosixDisk(Access.READ_ONLY)
    return report_of(Checking(disk, queue_path, spool_path, layout_of(queue_path, disk), now))
