"""Parts: the objects that one clustered queue is made of, complete and wired (`assembly`)."""

from __future__ import annotations

import attrs
from twisted.internet.interfaces import IReactorTime

from mailismus.journal.commit import GroupCommit
from mailismus.journal.pressure import Pressure
from mailismus.journal.spool_ids import Naming
from mailismus.journal.throttle import CommitThrottle
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.files.presence import PresenceWatch
from mailismus.queue.providers.clustered.checkpoint.run import CheckpointRunner
from mailismus.queue.providers.clustered.checkpoint.segments import JournalSegments
from mailismus.queue.providers.clustered.control.admission import AdmissionControl
from mailismus.queue.providers.clustered.control.closing import Closing
from mailismus.queue.providers.clustered.control.commit_results import CommitResults
from mailismus.queue.providers.clustered.control.hasten import Hastening
from mailismus.queue.providers.clustered.control.ledger import Ledger
from mailismus.queue.providers.clustered.control.waiters import ReadyWaiters
from mailismus.queue.providers.clustered.index.state import QueueState
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader
from mailismus.queue.providers.clustered.read.content import Contents
from mailismus.queue.providers.clustered.read.due_scan import DueScan
from mailismus.queue.providers.clustered.read.search import QueueSearch
from mailismus.queue.providers.clustered.recovery.opened import Opened
from mailismus.spool.draft import DraftTerms, RefusedDrafts, SpoolDraft
from mailismus.spool.release import Release


@attrs.frozen
class Limits:
    """Limits of one queue; sizes in bytes."""

    largest_item: int
    """Records that one item of the journal may hold."""
    settlements: int
    """How many settlements one item is sure to hold."""
    largest_in_journal: int
    """Contents up to this go into the journal, larger ones into a silo."""
    envelope: int
    """Recipients of one message together."""
    keeps_nothing_back: bool
    """`maxage` is 0: a commit waits until its entries are in clusters."""


@attrs.frozen
class Drafts:
    """Messages that are being received. `refused`: drafts of commits that failed."""

    naming: Naming
    terms: DraftTerms
    refused: RefusedDrafts

    def make(self) -> SpoolDraft:
        """Return a new draft. Raises `Unavailable` when no spool id is left."""
        return SpoolDraft(self.naming.next(), self.terms)


@attrs.frozen
class QueueParts:
    """Parts of one queue, leaves first."""

    root: str
    """The queue's directory."""
    opened: Opened
    reactor: IReactorTime
    limits: Limits
    state: QueueState
    waiters: ReadyWaiters
    reader: ClusterReader
    due_scan: DueScan
    release: Release
    ledger: Ledger
    commits: GroupCommit
    naming: Naming
    segments: JournalSegments
    checkpoints: CheckpointRunner
    hastening: Hastening
    space: SpaceWatch
    presence: PresenceWatch
    pressure: Pressure
    brake: CommitThrottle
    admission: AdmissionControl
    results: CommitResults
    closing: Closing
    contents: Contents
    search: QueueSearch
    drafts: Drafts
