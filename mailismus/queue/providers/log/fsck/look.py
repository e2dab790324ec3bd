"""One look at a stopped log-structured queue: all of its problems, step by step.

names -> positions -> the working suffix -> batches below it -> live envelopes -> spool
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mailismus.disk.interface import IDisk, IFile
from mailismus.journal.replay import Journal
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.finding import Checked
from mailismus.queue.fsck.local.names import NameCheck
from mailismus.queue.fsck.local.patches import Patch, open_patched
from mailismus.queue.fsck.local.segments import JournalState, check_journal
from mailismus.queue.fsck.local.state_files import check_state_files
from mailismus.queue.fsck.local.target import Checking, DirectoryLayout
from mailismus.queue.providers.log.format.positions import NAME, NEW_NAME, Positions
from mailismus.queue.providers.log.fsck.envelopes import EnvelopeCheck
from mailismus.queue.providers.log.fsck.executor import LogRepairExecutor
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind
from mailismus.queue.providers.log.fsck.positions import check_positions
from mailismus.queue.providers.log.fsck.segments import LogProblem, check_below
from mailismus.queue.providers.log.fsck.spool import LogSpoolCheck
from mailismus.queue.providers.log.recovery.offline import LiveEnvelopes
from mailismus.queue.providers.log.recovery.opening import DIRECTORIES
from mailismus.queue.providers.log.recovery.replay import ReplayedLog, load_suffix

LAYOUT = DirectoryLayout(DIRECTORIES, (NAME, NEW_NAME), LogFindingKind, keeps_all=True)
"""What a log-structured queue's directory has."""


class _PatchedDisk:
    """Opens files with patches over them."""

    def __init__(self, disk: IDisk, patches: Sequence[Patch]) -> None:
        self._disk, self._patches = disk, patches

    def open(self, path: str) -> IFile:
        return open_patched(self._disk, path, self._patches)


class LogLook:
    """One check, step by step. `on_log` is called after the findings of the suffix and before all behind."""

    def __init__(self, checking: Checking, on_log: Callable[[ReplayedLog], None] | None = None) -> None:
        self._checking, self._on_log = checking, on_log
        self.checked = sums_of(0, 0, 0)

    def problems(self) -> Iterator[LogProblem]:
        """All problems. Raises OSError where the check itself can't go on."""
        names = NameCheck(self._checking)
        yield from names.check_directories()
        yield from check_state_files(self._checking, names)
        positions = yield from check_positions(self._checking, names)

        def replay(journal: Journal) -> ReplayedLog:
            if positions is not None:
                journal.know_horizon(positions.suffix - 1)
            return load_suffix(journal)

        for found in check_journal(self._checking, names, replay):
            if isinstance(found, Fault):
                yield found
                continue
            try:
                yield from self._behind(found, positions, names)
            finally:
                found.close()

    def _behind(
        self, state: JournalState[ReplayedLog], positions: Positions | None, names: NameCheck
    ) -> Iterator[LogProblem]:
        checking, loaded, patches = self._checking, state.loaded, list(state.patches)
        if self._on_log is not None:
            self._on_log(loaded)
        has_lost = state.has_lost
        for one in check_below(checking, loaded, positions, patches):
            has_lost = has_lost or (one.finding is not None and one.finding.severity.needs_repair)
            yield one
        bad: list[tuple[str, Sequence[bytes]]] = []
        patched = _PatchedDisk(checking.disk, patches)
        live = LiveEnvelopes(patched, loaded, positions, _raise, lambda path, lines: bad.append((path, lines)))
        envelopes = EnvelopeCheck(live, patched, bad)
        yield from envelopes.check()
        if envelopes.epoch > loaded.epoch:
            mend = _SayEpoch(envelopes.epoch)
            words: dict[str, object] = {"known": loaded.epoch, "found": envelopes.epoch}
            yield Fault(LogFindingKind.EPOCH_BEHIND.finding(checking.journal_path, None, words), mend)
        epoch = max(loaded.epoch, envelopes.epoch)
        spool = LogSpoolCheck(checking, names, envelopes.in_files, epoch, has_lost or bool(bad))
        yield from spool.check()
        segments = len(loaded.journal.used) + len(loaded.journal.others)
        self.checked = sums_of(segments, envelopes.entries, spool.files)


class _SayEpoch:
    """Records an epoch."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def __call__(self, executor: LogRepairExecutor) -> None:
        executor.say_epoch(self._epoch)


def _raise(path: str, error: OSError) -> None:
    raise error


def sums_of(segments: int, entries: int, message_files: int) -> tuple[Checked, ...]:
    """Numbers of checked things, in the words of this provider."""
    return (
        Checked("segments", segments, "segment", "segments"),
        Checked("entries", entries, "live entry", "live entries"),
        Checked("message_files", message_files, "message file", "message files"),
    )
