"""State that the parts of one queue share: the two indexes, the checkpoint under way, the wall clock.

Made first, before every part that uses it, and complete from then on: no part needs another part to reach it.
Belongs to the reactor's thread; a worker is handed the pending checkpoint alone, by the coroutine that waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Entry
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import Memtable


@attrs.define
class PendingCheckpoint:
    """One checkpoint under way: what it moves, where to, and what it touched."""

    number: int
    horizon: int
    now: float
    entries: dict[QueueId, Entry] = attrs.field(factory=dict)
    """The live entries of the memtable at its beginning."""
    places: dict[QueueId, Place] = attrs.field(factory=dict)
    """Where their lines have been written."""
    grown: dict[ClusterId, int] = attrs.field(factory=dict)
    """Lengths of the clusters that got lines."""
    lines: dict[ClusterId, list[QueueId]] = attrs.field(factory=dict)
    """Entries whose lines they got, in the order of the lines."""
    late: set[QueueId] = attrs.field(factory=set)
    """Of `entries`, those whose settlement went into the journal since."""
    is_sealed: bool = False
    """Its record has gone into the journal: settlements name the new places from now on."""
    contents: dict[SpoolId, int] = attrs.field(factory=dict)
    """Messages whose content it wrote into their silos, and the highest number of a recipient that may have a name of its
    own there; 0: the file has the shared name alone."""
    met: set[SpoolId] = attrs.field(factory=set)
    """Messages of which entries have been applied to the cluster index, or were settled by then."""
    files: set[str] = attrs.field(factory=set)
    directories: set[str] = attrs.field(factory=set)
    left: set[str] = attrs.field(factory=set)
    """Directories that files were removed from."""
    suspects: set[str] = attrs.field(factory=set)
    """Files whose sync failed: what they hold is in the page cache at best."""
    lacking: list[SpoolId] = attrs.field(factory=list)
    """Messages whose content could not be read: their entries move without it."""
    unread: set[int] = attrs.field(factory=set)
    """Numbers of the segments that hold it."""

    def begin(self, entries: dict[QueueId, Entry], asked: Collection[QueueId]) -> None:
        """Move these entries. `asked`: entries whose settlement is in the journal and not durable yet."""
        self.entries = entries
        self.late = {queue_id for queue_id in asked if queue_id in entries}

    def mark_sealed(self) -> None:
        """The record goes into the journal now: no entry is late from here on."""
        self.is_sealed = True

    def suspect_all_files(self) -> None:
        """A sync of everything begins: if it fails, none of the files is to be trusted."""
        self.suspects |= self.files


class QueueState:
    """State shared by the parts of one queue. `now`: UTC seconds."""

    def __init__(self, cluster_index: ClusterIndex, newest_checkpoint: int, now: Callable[[], float]) -> None:
        """`newest_checkpoint`: the highest number that a checkpoint of an earlier start may have had."""
        self.memtable = Memtable(cluster_index.out_of)
        self.cluster_index = cluster_index
        self.now = now
        self.pending: PendingCheckpoint | None = None
        """The checkpoint under way; None: there is none."""
        self._newest_checkpoint = newest_checkpoint
        self._next_number = newest_checkpoint + 1

    def begin_checkpoint(self, horizon: int) -> PendingCheckpoint:
        """Begin the checkpoint with the next number; a number is used once, whatever becomes of its checkpoint.
        `horizon`: the sequence number of the last batch that it covers."""
        self.pending = pending = PendingCheckpoint(self._next_number, horizon, self.now())
        self._next_number += 1
        return pending

    def end_checkpoint(self) -> None:
        """The checkpoint under way is applied, or abandoned."""
        self.pending = None

    def note_durable(self, number: int) -> None:
        """The checkpoint of this number is durable."""
        self._newest_checkpoint = number

    def newest_checkpoint(self) -> int:
        """Number of the newest checkpoint that counts."""
        return self._newest_checkpoint
