"""Assembly: makes the parts of a clustered queue and wires them, leaves first.

The only module that knows every class of the provider. Each part is complete when it is made, and is given parts that were
made before it. One part learns of a later one, by a named method (`BatchEvents.listen`): the parts that act on the end of a
batch need the journal.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import Workers
from mailismus.journal.batch_events import BatchEvents
from mailismus.journal.commit import GroupCommit
from mailismus.journal.pressure import Pressure
from mailismus.journal.spool_ids import Naming
from mailismus.journal.throttle import CommitThrottle
from mailismus.journal.writer import most_records_size
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.files.presence import PresenceWatch
from mailismus.queue.files.recipient_line import LINE_SHARE, LONGEST_LINE
from mailismus.queue.providers.clustered.checkpoint.cleanup import ClusterCleanup
from mailismus.queue.providers.clustered.checkpoint.files import CheckpointFiles
from mailismus.queue.providers.clustered.checkpoint.policy import CheckpointPolicy
from mailismus.queue.providers.clustered.checkpoint.run import CheckpointRunner
from mailismus.queue.providers.clustered.checkpoint.sealing import CheckpointSealing
from mailismus.queue.providers.clustered.checkpoint.segments import JournalSegments
from mailismus.queue.providers.clustered.checkpoint.write import CheckpointWriter
from mailismus.queue.providers.clustered.commit.items import epoch_item
from mailismus.queue.providers.clustered.control.admission import AdmissionControl
from mailismus.queue.providers.clustered.control.batch_results import BatchResults
from mailismus.queue.providers.clustered.control.closing import Closing
from mailismus.queue.providers.clustered.control.commit_results import CommitResults
from mailismus.queue.providers.clustered.control.hasten import Hastening
from mailismus.queue.providers.clustered.control.ledger import Ledger
from mailismus.queue.providers.clustered.control.waiters import ReadyWaiters
from mailismus.queue.providers.clustered.index.state import QueueState
from mailismus.queue.providers.clustered.parts import Drafts, Limits, QueueParts
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader
from mailismus.queue.providers.clustered.read.content import Contents
from mailismus.queue.providers.clustered.read.due_scan import DueScan
from mailismus.queue.providers.clustered.read.search import QueueSearch
from mailismus.queue.providers.clustered.reclaim.lines import QueueLines
from mailismus.queue.providers.clustered.recovery.opened import Opened
from mailismus.queue.throttle import WorkClocks, WorkThrottle
from mailismus.spool.budget import Budget
from mailismus.spool.draft import DraftTerms, RefusedDrafts
from mailismus.spool.reference_scan import ReferenceScan
from mailismus.spool.references import ReferenceCache
from mailismus.spool.release import Release
from mailismus.spool.removal import MessageRemoval

DRAFT_BYTES = 24 << 20
"""Memory of all drafts together that are small enough to stay there; the next one makes it 32 MiB."""

BEHIND_BYTES = 8 << 20
"""Memory of all drafts together that waits for the disk; beyond it each client waits for the write of its own piece."""


def build(
    settings: QueueSettings,
    disk: IDisk,
    opened: Opened,
    workers: Workers,
    reactor: IReactorTime,
    now: Callable[[], float],
    clocks: WorkClocks | None = None,
) -> ClusteredQueue:
    """Make the queue of an opened directory. `opened` holds the locks and the result of the replay; `now`: UTC seconds;
    `clocks`: as in `WorkThrottle`."""
    root, spool_root, files = settings.rootpath, settings.spool.rootpath, workers.files
    corrupt = os.path.join(root, "corrupt")
    limits = limits_of(settings, opened)
    state = QueueState(opened.resting, opened.next_checkpoint - 1, now)
    memtable, cluster_index = state.memtable, state.cluster_index
    waiters = ReadyWaiters(state)

    reader = ClusterReader(files, cluster_index)
    due_scan = DueScan(disk, root, files, reader, memtable, cluster_index)
    first_new = SpoolId(opened.spool_ids.epoch << 32)
    removal = MessageRemoval(disk, spool_root, files, first_new, corrupt)
    references = ReferenceCache(settings.spool.maxspidcache, first_new)
    lines, has_links = QueueLines(disk, memtable, reader, due_scan.quarantine), settings.spool.hardlinks
    scan = ReferenceScan(removal, references, lines, names_recipients=has_links)
    release = Release(removal, references, scan, reactor, has_links=has_links)
    ledger = Ledger(state, release, waiters.fire_due)
    contents = Contents(disk, spool_root, files, memtable, opened.writer.segments, corrupt)
    throttle = WorkThrottle(clocks)
    search = QueueSearch(disk, root, reader, memtable, cluster_index, state.newest_checkpoint, throttle)

    events = BatchEvents()
    commits = GroupCommit(opened.writer, workers.journal, reactor, limits.largest_item, events.on_durable, events.on_failed)
    naming = Naming(opened.spool_ids, commits, opened.writer, epoch_item)
    pressure = Pressure(commits, reactor)
    space = SpaceWatch(disk, settings, files, reactor)
    presence = PresenceWatch(opened.locations.everything, commits, files, reactor)

    segments = JournalSegments(opened.writer, opened.pool, settings.journal.maxsize, corrupt)
    checkpoints = _build_checkpoints(settings, disk, opened, workers, reactor, state, ledger, commits, naming, segments)
    admission = AdmissionControl(commits, segments, opened.pool, space, pressure)
    closing = Closing(commits, checkpoints, pressure, memtable, reactor, opened.release)
    refused = RefusedDrafts()
    brake = CommitThrottle()
    results = CommitResults(
        *(state, ledger, checkpoints, segments, refused, brake, reactor),
        keeps_nothing_back=limits.keeps_nothing_back,
    )
    events.listen(results)
    events.listen(BatchResults(memtable, segments, refused, waiters, checkpoints, closing, naming, limits.largest_item))

    memory, behind = Budget(DRAFT_BYTES), Budget(BEHIND_BYTES)
    terms = DraftTerms(disk, spool_root, files, memory, behind, limits.largest_in_journal, settings.spool.bufsize)

    parts = QueueParts(
        root=root,
        opened=opened,
        reactor=reactor,
        limits=limits,
        state=state,
        waiters=waiters,
        reader=reader,
        due_scan=due_scan,
        release=release,
        ledger=ledger,
        commits=commits,
        naming=naming,
        segments=segments,
        checkpoints=checkpoints,
        hastening=Hastening(state, checkpoints, waiters),
        space=space,
        presence=presence,
        pressure=pressure,
        brake=brake,
        admission=admission,
        results=results,
        closing=closing,
        contents=contents,
        search=search,
        drafts=Drafts(naming, terms, refused),
    )
    return ClusteredQueue(parts)


def limits_of(settings: QueueSettings, opened: Opened) -> Limits:
    """Return the sizes that follow from settings and the size of segments."""
    largest_item = most_records_size(opened.pool.size_bytes)
    largest_in_journal = min(settings.journal.largemsgsize, largest_item // 4)
    return Limits(
        largest_item=largest_item,
        settlements=largest_item // 2 // LONGEST_LINE,
        largest_in_journal=largest_in_journal,
        envelope=(largest_item - largest_in_journal) // LINE_SHARE,
        keeps_nothing_back=settings.journal.maxage_s == 0,
    )


def _build_checkpoints(
    settings: QueueSettings,
    disk: IDisk,
    opened: Opened,
    workers: Workers,
    reactor: IReactorTime,
    state: QueueState,
    ledger: Ledger,
    commits: GroupCommit,
    naming: Naming,
    segments: JournalSegments,
) -> CheckpointRunner:
    root, spool, journal = settings.rootpath, settings.spool, settings.journal
    policy = CheckpointPolicy(journal.maxage_s, max(journal.maxsize, 4 * opened.pool.size_bytes))
    write = CheckpointWriter(disk, root, spool.rootpath, settings.maxclustersize, has_links=spool.hardlinks)
    cleanup = ClusterCleanup(write, workers.files, state.cluster_index, root)
    presence = opened.locations.everything
    files = CheckpointFiles(write, cleanup, workers.files, state, segments, presence, root)
    sealing = CheckpointSealing(state, files, segments, policy, ledger, commits, naming, reactor)
    return CheckpointRunner(state, policy, files, sealing, segments, commits, ledger.asked, reactor)
