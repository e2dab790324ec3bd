"""State that the parts of one queue share: the two indexes, the checkpoint under way, the wall clock.

Made first, before every part that uses it, and complete from then on: no part needs another part to reach it.
Belongs to the reactor's thread; a worker is handed the pending checkpoint alone, by the coroutine that waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from mailismus.mail.ids import EntryKey, QueueId, SpoolId
from mailismus.queue.interface import Entry
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import Memtable


@attrs.define
class PendingCheckpoint:
    """One checkpoint under way: its entries, their new places, and the files that it wrote."""

    number: int
    horizon: int
    now: float
    entries: dict[QueueId, Entry] = attrs.field(factory=dict)
    """The live entries of the memtable at its beginning."""
    places: dict[QueueId, Place] = attrs.field(factory=dict)
    """Places of the lines that were written."""
    grown: dict[ClusterId, int] = attrs.field(factory=dict)
    """Lengths of the clusters that got lines."""
    lines: dict[ClusterId, list[QueueId]] = attrs.field(factory=dict)
    """Entries whose lines were appended to each cluster, in the order of the lines."""
    late: set[QueueId] = attrs.field(factory=set)
    """Of `entries`: those whose settlement went into the journal since."""
    is_sealed: bool = False
    """Its record has been appended to the journal: settlements name the new places from now on."""
    contents: dict[SpoolId, int] = attrs.field(factory=dict)
    """Messages whose content it wrote into their silos, and the highest number of a recipient that may have a file name of
    its own; 0: the file has the shared name alone."""
    met: set[SpoolId] = attrs.field(factory=set)
    """Messages of which entries have been applied to the cluster index, or had been settled by then."""
    files: set[str] = attrs.field(factory=set)
    directories: set[str] = attrs.field(factory=set)
    left: set[str] = attrs.field(factory=set)
    """Directories that files were removed from."""
    suspects: set[str] = attrs.field(factory=set)
    """Files whose sync failed: their new bytes may be in the page cache alone."""
    lacking: list[SpoolId] = attrs.field(factory=list)
    """Messages whose content could not be read: their entries move without it."""
    unread: set[int] = attrs.field(factory=set)
    """Numbers of the segments that hold such contents."""

    def begin(self, entries: dict[QueueId, Entry], asked: Collection[EntryKey]) -> None:
        """Begin to move these entries. `asked`: entries whose settlement is in the journal and not durable yet."""
        self.entries = entries
        self.late = {QueueId(*key) for key in asked if key in entries}

    def mark_sealed(self) -> None:
        """Note that the record is appended to the journal now: no entry is late from here on."""
        self.is_sealed = True

    def suspect_all_files(self) -> None:
        """Note that a sync of a whole file system begins: if it fails, all files of the checkpoint are suspect."""
        self.suspects |= self.files


class QueueState:
    """State shared by the parts of one queue. `now`: UTC seconds."""

    def __init__(self, cluster_index: ClusterIndex, newest_checkpoint: int, now: Callable[[], float]) -> None:
        """`newest_checkpoint`: the highest number that a checkpoint of an earlier start may have had."""
        self.memtable = Memtable()
        self.cluster_index = cluster_index
        self.now = now
        self.pending: PendingCheckpoint | None = None
        """The checkpoint under way; None: there is none."""
        self._newest_checkpoint = newest_checkpoint
        self._next_number = newest_checkpoint + 1

    def begin_checkpoint(self, horizon: int) -> PendingCheckpoint:
        """Begin the checkpoint with the next number. A number is used once, even if its checkpoint is abandoned. `horizon`:
        the sequence number of the last batch that it covers."""
        self.pending = pending = PendingCheckpoint(self._next_number, horizon, self.now())
        self._next_number += 1
        return pending

    def end_checkpoint(self) -> None:
        """Note that the checkpoint under way is applied, or abandoned."""
        self.pending = None

    def note_durable(self, number: int) -> None:
        """Note that the checkpoint of this number is durable."""
        self._newest_checkpoint = number

    def newest_checkpoint(self) -> int:
        """Return the number of the newest durable checkpoint."""
        return self._newest_checkpoint
