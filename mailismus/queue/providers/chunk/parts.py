"""The parts of one queue, by name."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.providers.chunk.control.admission import ChunkAdmission
from mailismus.queue.providers.chunk.control.adoption import ChunkAdoption
from mailismus.queue.providers.chunk.control.due_times import ChunkDueTimes
from mailismus.queue.providers.chunk.control.ledger import ChunkLedger
from mailismus.queue.providers.chunk.control.loading import ChunkLoading
from mailismus.queue.providers.chunk.control.names import ChunkNames
from mailismus.queue.providers.chunk.control.requests import ChunkRequests
from mailismus.queue.providers.chunk.control.scanning import ChunkScanning
from mailismus.queue.providers.chunk.control.upkeep import ChunkUpkeep
from mailismus.queue.providers.chunk.control.work import ChunkWork
from mailismus.queue.providers.chunk.read.content import ChunkContents
from mailismus.queue.providers.chunk.read.looking import ChunkLooking
from mailismus.queue.providers.chunk.recovery.opening import OpenedChunks
from mailismus.queue.providers.chunk.write.mess import MessWriters
from mailismus.spool.draft import DraftTerms


@attrs.frozen(eq=False)
class ChunkParts:
    """All of them. `now`: UTC seconds."""

    opened: OpenedChunks
    reactor: IReactorTime
    now: Callable[[], float]
    names: ChunkNames
    terms: DraftTerms
    writers: MessWriters
    ledger: ChunkLedger
    work: ChunkWork
    contents: ChunkContents
    loading: ChunkLoading
    looking: ChunkLooking
    requests: ChunkRequests
    upkeep: ChunkUpkeep
    scanning: ChunkScanning
    adoption: ChunkAdoption
    due_times: ChunkDueTimes
    space: SpaceWatch
    admission: ChunkAdmission
