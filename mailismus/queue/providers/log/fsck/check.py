"""Check of a stopped log-structured queue, within the frame of every fsck (`queue.fsck.frame`). It changes nothing."""

from __future__ import annotations

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.files.newer_formats import refuse_newer_journal, refuse_newer_spool
from mailismus.queue.fsck.finding import FsckReport
from mailismus.queue.fsck.local.report import LocalCheckReport
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.providers.log.format.version import OWNERSHIP
from mailismus.queue.providers.log.fsck.look import LAYOUT, LogLook


def report_of(checking: Checking) -> LocalCheckReport:
    """Return the report of a check, which is made as it is read."""
    return LocalCheckReport(checking, LogLook, OWNERSHIP, refuse_newer)


def refuse_newer(checking: Checking) -> None:
    """Refuse files of a newer format, which would look like damage. Raises `NewerFormat`."""
    refuse_newer_journal(checking.disk, checking.journal_path)
    refuse_newer_spool(checking.disk, checking.spool_path)


def checking_of(settings: QueueSettings, disk: IDisk, now: float) -> Checking:
    """What to check for a server that is to start here with these settings."""
    return Checking(disk, settings.rootpath, settings.spool.rootpath, LAYOUT, now, hardlinks=False, is_here=True)


def check_configured(settings: QueueSettings, now: float) -> FsckReport:
    """Check the queue of these settings."""
    return report_of(checking_of(settings, PosixDisk(Access.READ_ONLY), now))


def check_copied(queue_path: str, spool_path: str, now: float) -> FsckReport:
    """Check a queue copied from elsewhere."""
    return report_of(Checking(PosixDisk(Access.READ_ONLY), queue_path, spool_path, LAYOUT, now))
