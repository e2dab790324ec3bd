"""An open queue: what a start hands to the assembly."""

from __future__ import annotations

import attrs

from mailismus.journal.opening import close_segments
from mailismus.journal.pool import SegmentPool
from mailismus.journal.spool_ids import SpoolIds
from mailismus.journal.writer import JournalWriter
from mailismus.queue.files.locations import Locations
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage


@attrs.define
class Opened:
    """An open queue: what was found, and everything a provider needs to go on."""

    pool: SegmentPool
    writer: JournalWriter
    spool_ids: SpoolIds
    youngs: list[JournaledMessage]
    resting: ClusterIndex
    next_checkpoint: int
    """Higher than the number of any cluster found."""
    set_aside: int
    """Batches and records of the journal that did not check."""
    locations: Locations

    def release(self) -> None:
        """Give up the locks."""
        self.locations.release()

    def close_files(self) -> None:
        """Close the segments. Nothing works on them any more; a server leaves that to the end of its process."""
        close_segments(self.pool, self.writer)
