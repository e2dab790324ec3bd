"""Check of a stopped log-structured queue, within the frame of every fsck (`queue.fsck.frame`). It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.files.newer_formats import refuse_newer_journal, refuse_newer_spool
from mailismus.queue.fsck.finding import Checked, Finding, FsckReport
from mailismus.queue.fsck.frame import check_queue
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.providers.log.format.version import OWNERSHIP
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind
from mailismus.queue.providers.log.fsck.look import LAYOUT, LogLook


class LogCheckReport:
    """A check, which changes nothing: an `FsckReport` and its `CheckSteps`."""

    def __init__(self, checking: Checking) -> None:
        self._checking = checking
        self._look = LogLook(checking)
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
        refuse_newer(self._checking)

    def not_locked(self, path: str, why: str) -> Finding:
        return LogFindingKind.NOT_LOCKED.finding(path, None, {"why": why})

    def findings(self) -> Iterator[Finding]:
        for found in self._look.problems():
            if found.finding is not None:
                yield found.finding


def refuse_newer(checking: Checking) -> None:
    """Refuse files of a newer format, which would look like damage. Raises `NewerFormat`."""
    refuse_newer_journal(checking.disk, checking.journal_path)
    refuse_newer_spool(checking.disk, checking.spool_path)


def checking_of(settings: QueueSettings, disk: IDisk, now: float) -> Checking:
    """What to check for a server that is to start here with these settings."""
    return Checking(disk, settings.rootpath, settings.spool.rootpath, LAYOUT, now, hardlinks=False, is_here=True)


def check_configured(settings: QueueSettings, now: float) -> FsckReport:
    """Check the queue of these settings."""
    return LogCheckReport(checking_of(settings, PosixDisk(Access.READ_ONLY), now))


def check_copied(queue_path: str, spool_path: str, now: float) -> FsckReport:
    """Check a queue copied from elsewhere."""
    return LogCheckReport(Checking(PosixDisk(Access.READ_ONLY), queue_path, spool_path, LAYOUT, now))
