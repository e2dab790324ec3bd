"""Check of a stopped queue of chunks, within the frame of every fsck (`queue.fsck.frame`). It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.fsck.finding import Checked, Finding, FsckReport
from mailismus.queue.fsck.frame import check_queue
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.providers.chunk.format.version import OWNERSHIP
from mailismus.queue.providers.chunk.fsck.kinds import ChunkFindingKind
from mailismus.queue.providers.chunk.fsck.look import LAYOUT, ChunkLook


class ChunkCheckReport:
    """A check, which changes nothing: an `FsckReport` and its `CheckSteps`."""

    def __init__(self, checking: Checking) -> None:
        self._checking = checking
        self.disk = checking.disk
        self.roots = (checking.queue_path,)
        self._look: ChunkLook | None = None

    @property
    def checked(self) -> tuple[Checked, ...]:
        """How much was checked."""
        return self._look.checked if self._look is not None else ()

    def __iter__(self) -> Iterator[Finding]:
        return check_queue(self)

    def refuse_unknown(self) -> None:
        OWNERSHIP.refuse_unknown(self.disk, self._checking.queue_path)

    def refuse_newer(self) -> None:
        """There is one format of these files."""

    def not_locked(self, path: str, why: str) -> Finding:
        return ChunkFindingKind.NOT_LOCKED.finding(path, None, {"why": why})

    def findings(self) -> Iterator[Finding]:
        look = self._look = ChunkLook(self._checking)
        for found in look.problems():
            if found.finding is not None:
                yield found.finding


def checking_of(settings: QueueSettings, disk: IDisk, now: float) -> Checking:
    """What to check for a server that is to start here with these settings."""
    return Checking(disk, settings.rootpath, settings.rootpath, LAYOUT, now, hardlinks=False, is_here=True)


def check_configured(settings: QueueSettings, now: float) -> FsckReport:
    """Check the queue of these settings."""
    return ChunkCheckReport(checking_of(settings, PosixDisk(Access.READ_ONLY), now))


def check_copied(queue_path: str, now: float) -> FsckReport:
    """Check a queue copied from elsewhere."""
    return ChunkCheckReport(Checking(PosixDisk(Access.READ_ONLY), queue_path, queue_path, LAYOUT, now))
