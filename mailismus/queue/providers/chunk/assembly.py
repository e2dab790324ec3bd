"""Assembly: makes the parts of a queue and wires them, leaves first. Each part is complete when it is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
from twisted.internet.interfaces import IReactorTime

from mailismus.chunks.generator import NameGenerator
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.interface import Area
from mailismus.queue.provider import IsLocal
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
from mailismus.queue.providers.chunk.control.workers import ChunkWorkers
from mailismus.queue.providers.chunk.format.version import IDS
from mailismus.queue.providers.chunk.parts import ChunkParts
from mailismus.queue.providers.chunk.provider import ChunkQueue
from mailismus.queue.providers.chunk.read.content import ChunkContents
from mailismus.queue.providers.chunk.read.looking import ChunkLooking
from mailismus.queue.providers.chunk.recovery.due_times import write_due_times
from mailismus.queue.providers.chunk.recovery.opening import OpenedChunks
from mailismus.queue.providers.chunk.write.batch import BatchWriter
from mailismus.queue.providers.chunk.write.ends import EndsWriter
from mailismus.queue.providers.chunk.write.mess import MessWriters
from mailismus.queue.providers.chunk.write.syncing import BatchSyncing
from mailismus.spool.budget import Budget
from mailismus.spool.draft import DraftTerms

SMALL_BYTES = 65536
"""Contents up to this size stay in memory until their batch."""
DRAFT_BYTES = 24 << 20
"""Memory of all drafts together that are small enough to stay there."""
BEHIND_BYTES = 8 << 20
"""Memory of all drafts together that waits for the disk."""


class _AfterBatch:
    """Tells the queue, which is made after its work, of batches that have ended."""

    def __init__(self) -> None:
        self._tell: Callable[[set[Area]], None] = lambda areas: None

    def listen(self, tell: Callable[[set[Area]], None]) -> None:
        """Call this from now on."""
        self._tell = tell

    def __call__(self, areas: set[Area]) -> None:
        self._tell(areas)


def build(
    settings: QueueSettings,
    disk: IDisk,
    opened: OpenedChunks,
    workers: ChunkWorkers,
    reactor: IReactorTime,
    now: Callable[[], float],
    is_local: IsLocal,
    generator: NameGenerator,
) -> ChunkQueue:
    """Make the queue of an opened directory. `now`: UTC seconds; `is_local`: of a recipient, asked whenever its line is
    written."""
    directories, files = opened.directories, workers.files
    writers = MessWriters(directories, generator, now, opened.scan.born)
    names = ChunkNames(opened.epoch, directories.of(IDS), files)
    contents = ChunkContents(directories, files)
    ledger = ChunkLedger(is_local, now, contents.forget)
    ledger.resting.rows.reserve(opened.contents)
    loading = ChunkLoading(directories, ledger, files, now)
    after_batch = _AfterBatch()
    batches = BatchWriter(directories, writers, opened.presence, BatchSyncing(directories, reactor.seconds))
    ends_directories = opened.ends_directories
    ends = EndsWriter(ends_directories, BatchSyncing(ends_directories, reactor.seconds))
    work = ChunkWork(batches, ends, ledger, workers, reactor, after_batch)
    here = attrs.evolve(settings, spool=attrs.evolve(settings.spool, rootpath=settings.rootpath))
    space = SpaceWatch(disk, here, files, reactor)
    upkeep = ChunkUpkeep(ledger, work, opened.presence, files, reactor)
    admission = ChunkAdmission(work, space, upkeep)
    requests = ChunkRequests(ledger, work, contents, loading, admission.refusal, upkeep.add)
    scanning = ChunkScanning(opened.scan, ledger, work, upkeep, names, files, reactor, directories.root)
    write = partial(write_due_times, disk, directories.root)
    due_times = ChunkDueTimes(ledger.resting.rows, lambda: scanning.is_over, write, files, reactor)
    terms = DraftTerms(
        *(disk, settings.rootpath, files, Budget(DRAFT_BYTES), Budget(BEHIND_BYTES), SMALL_BYTES, settings.spool.bufsize)
    )
    queue = ChunkQueue(
        ChunkParts(
            opened=opened,
            reactor=reactor,
            now=now,
            names=names,
            terms=terms,
            writers=writers,
            ledger=ledger,
            work=work,
            contents=contents,
            loading=loading,
            looking=ChunkLooking(ledger.index, ledger.resting, directories, files),
            requests=requests,
            upkeep=upkeep,
            scanning=scanning,
            adoption=ChunkAdoption(directories, ledger, requests, upkeep, work, scanning, reactor),
            due_times=due_times,
            space=space,
            admission=admission,
        )
    )
    after_batch.listen(queue.on_batch)
    return queue
