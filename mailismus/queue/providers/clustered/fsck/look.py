"""One look at a stopped clustered queue: all of its problems, step by step.

names -> journal -> clusters -> spool
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.finding import Checked
from mailismus.queue.fsck.local.names import NameCheck
from mailismus.queue.fsck.local.segments import JournalState, check_journal
from mailismus.queue.fsck.local.state_files import check_state_files
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.providers.clustered.fsck.evidence.history import JournalHistory
from mailismus.queue.providers.clustered.fsck.findings.clusters import Clusters, check_clusters
from mailismus.queue.providers.clustered.fsck.findings.kinds import Problem
from mailismus.queue.providers.clustered.fsck.findings.spool import SpoolCheck
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue, load_journal


class Look:
    """One check, step by step. `on_journal` is called after the findings of the journal and before all others."""

    def __init__(self, checking: Checking, on_journal: Callable[[JournalState[ReplayedQueue]], None] | None = None) -> None:
        self._checking = checking
        self._on_journal = on_journal
        self.checked = sums_of(0, 0, 0, 0)

    def problems(self) -> Iterator[Problem]:
        """All problems. Raises OSError where the check itself can't go on."""
        names = NameCheck(self._checking)
        yield from names.check_directories()
        yield from check_state_files(self._checking, names)
        for found in check_journal(self._checking, names, load_journal):
            if isinstance(found, Fault):
                yield found
                continue
            try:
                yield from self._behind(found, names)
            finally:
                found.close()

    def _behind(self, journal: JournalState[ReplayedQueue], names: NameCheck) -> Iterator[Problem]:
        if self._on_journal is not None:
            self._on_journal(journal)
        loaded = journal.loaded
        history = JournalHistory(loaded.journal)
        for found in check_clusters(self._checking, names, loaded, history):
            if isinstance(found, Clusters):
                spool = SpoolCheck(self._checking, names, journal, found, history)
                yield from spool.check()
                segments = len(loaded.journal.used) + len(loaded.journal.others)
                self.checked = sums_of(segments, found.count, spool.entries, spool.files)
            else:
                yield found


def sums_of(segments: int, clusters: int, entries: int, message_files: int) -> tuple[Checked, ...]:
    """Numbers of checked things, in the words of this provider."""
    return (
        Checked("segments", segments, "segment", "segments"),
        Checked("clusters", clusters, "cluster", "clusters"),
        Checked("entries", entries, "live entry", "live entries"),
        Checked("message_files", message_files, "message file", "message files"),
    )
