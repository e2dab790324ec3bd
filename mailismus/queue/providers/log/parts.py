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
from mailismus.queue.providers.log.commit.asked import AskedSettlements
from mailismus.queue.providers.log.control.admission import LogAdmission
from mailismus.queue.providers.log.control.closing import LogClosing
from mailismus.queue.providers.log.control.compaction import Compaction
from mailismus.queue.providers.log.control.learning import Learning
from mailismus.queue.providers.log.control.ledger import LogLedger
from mailismus.queue.providers.log.control.loading import PieceLoading
from mailismus.queue.providers.log.control.moves import Moves
from mailismus.queue.providers.log.control.piece_reading import PieceReading
from mailismus.queue.providers.log.control.results import LogResults
from mailismus.queue.providers.log.control.rounds import MarkRounds
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.control.visits import Visits
from mailismus.queue.providers.log.control.waiters import LogWaiters
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.search_holds import SearchHolds
from mailismus.queue.providers.log.index.working_set import WorkingSet
from mailismus.queue.providers.log.read.content import LogContents
from mailismus.queue.providers.log.recovery.opening import OpenedLog
from mailismus.queue.throttle import WorkThrottle
from mailismus.spool.draft import DraftTerms, RefusedDrafts, SpoolDraft
from mailismus.spool.release import Release


@attrs.frozen
class LogLimits:
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
class LogDrafts:
    """Messages that are being received. `refused`: drafts of commits that failed."""

    naming: Naming
    terms: DraftTerms
    refused: RefusedDrafts

    def make(self) -> SpoolDraft:
        """Return a new draft. Raises `Unavailable` when no spool id is left."""
        return SpoolDraft(self.naming.next(), self.terms)


@attrs.frozen
class LogParts:
    """Parts of one queue, leaves first. `now`: UTC seconds."""

    root: str
    opened: OpenedLog
    reactor: IReactorTime
    now: Callable[[], float]
    limits: LogLimits
    working_set: WorkingSet
    resting: Resting
    waiters: LogWaiters
    release: Release
    asked: AskedSettlements
    ledger: LogLedger
    commits: GroupCommit
    naming: Naming
    segments: LogSegments
    contents: LogContents
    reading: PieceReading
    throttle: WorkThrottle
    search_holds: SearchHolds
    visits: Visits
    learning: Learning
    loading: PieceLoading
    results: LogResults
    moves: Moves
    compaction: Compaction
    rounds: MarkRounds
    space: SpaceWatch
    presence: PresenceWatch
    pressure: Pressure
    admission: LogAdmission
    closing: LogClosing
    drafts: LogDrafts
