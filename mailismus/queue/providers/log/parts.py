"""Parts: the objects that one log-structured queue is made of, complete and wired (`assembly`)."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.interfaces import IReactorTime

from mailismus.journal.commit import GroupCommit
from mailismus.journal.pressure import Pressure
from mailismus.journal.spool_ids import Naming
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.files.presence import PresenceWatch
from mailismus.queue.providers.log.control.admission import AdmissionControl
from mailismus.queue.providers.log.control.closing import Closing
from mailismus.queue.providers.log.control.ledger import Ledger
from mailismus.queue.providers.log.control.loading import Loading
from mailismus.queue.providers.log.control.moves import Moves
from mailismus.queue.providers.log.control.results import CommitResults
from mailismus.queue.providers.log.control.rounds import Rounds
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.control.waiters import ReadyWaiters
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.working_set import WorkingSet
from mailismus.queue.providers.log.read.content import Contents
from mailismus.queue.providers.log.recovery.opening import Opened
from mailismus.spool.draft import DraftTerms, RefusedDrafts, SpoolDraft
from mailismus.spool.release import Release


@attrs.frozen
class Limits:
    """Limits of one queue; sizes in bytes."""

    largest_item: int
    """Records that one item of the log may hold."""
    settlements: int
    """How many settlements one item is sure to hold."""
    largest_in_log: int
    """Contents up to this go into the log, larger ones into a silo."""
    envelope: int
    """Recipients of one message together."""


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
    """Parts of one queue, leaves first. `now`: UTC seconds."""

    root: str
    opened: Opened
    reactor: IReactorTime
    now: Callable[[], float]
    limits: Limits
    working_set: WorkingSet
    resting: Resting
    waiters: ReadyWaiters
    release: Release
    ledger: Ledger
    commits: GroupCommit
    naming: Naming
    segments: LogSegments
    contents: Contents
    loading: Loading
    results: CommitResults
    moves: Moves
    rounds: Rounds
    space: SpaceWatch
    presence: PresenceWatch
    pressure: Pressure
    admission: AdmissionControl
    closing: Closing
    drafts: Drafts
