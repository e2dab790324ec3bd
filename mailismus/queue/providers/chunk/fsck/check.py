"""Check of a stopped queue of chunks, within the frame of every fsck (`queue.fsck.frame`). It changes nothing."""

from __future__ import annotations

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.fsck.finding import FsckReport
from mailismus.queue.fsck.local.report import LocalCheckReport
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.providers.chunk.format.version import OWNERSHIP
from mailismus.queue.providers.chunk.fsck.look import LAYOUT, ChunkLook


def report_of(checking: Checking) -> LocalCheckReport:
    """Return the report of a check, which is made as it is read."""
    return LocalCheckReport(checking, ChunkLook, OWNERSHIP, _refuse_no_newer)


def _refuse_no_newer(_: Checking) -> None:
    """There is one format of these files."""


def checking_of(settings: QueueSettings, disk: IDisk, now: float) -> Checking:
    """What to check for a server that is to start here with these settings."""
    return Checking(disk, settings.rootpath, settings.rootpath, LAYOUT, now, hardlinks=False, is_here=True)


def check_configured(settings: QueueSettings, now: float) -> FsckReport:
    """Check the queue of these settings."""
    return report_of(checking_of(settings, PosixDisk(Access.READ_ONLY), now))


def check_copied(queue_path: str, now: float) -> FsckReport:
    """Check a queue copied from elsewhere."""
    return report_of(Checking(PosixDisk(Access.READ_ONLY), queue_path, queue_path, LAYOUT, now))
