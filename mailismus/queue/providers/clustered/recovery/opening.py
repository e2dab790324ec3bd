"""Opening the queue: directories, locks, replay, and the start's own barrier.

Blocking, before the reactor runs: whatever can refuse a start is tried here.

*Rules* (explored state by state in the queue's model): **a start acts on nothing before its own barrier**. After
`kill -9` the end of the journal may be in the page cache alone; a start that believed it and then lost power would lose
mail. So it begins a new segment whose header raises the epoch and denies the last batch found, says that batch again
there, and syncs. Until then it reuses only segments that were free by the checkpoint before the newest.

Nothing it does is needed twice or harmful twice: a start that is stopped anywhere begins anew.
"""

from __future__ import annotations

import enum
import errno
import os
import zlib
from collections.abc import Iterable, Mapping

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock, close_read
from mailismus.disk.presence import Presence
from mailismus.disk.worker import IWorker
from mailismus.errors import NewerFormat, StartError
from mailismus.journal.batch import padded_size
from mailismus.journal.pool import SegmentPool
from mailismus.journal.replay import SUFFIX as SEGMENT_SUFFIX
from mailismus.journal.segment import Segment, segment_size_for
from mailismus.journal.spool_ids import SpoolIds
from mailismus.journal.writer import JournalWriter, RandomBytes
from mailismus.queue.files.directories import check_safe, lock_roots, make_directories
from mailismus.queue.files.locations import QUEUE_DIRECTORIES, Locations, remember
from mailismus.queue.files.mark import ensure_mark
from mailismus.queue.files.newer_formats import refuse_newer_journal
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.format.record import FORMAT_WITH_WORDS, epoch_record
from mailismus.queue.providers.clustered.format.slots import slot_start
from mailismus.queue.providers.clustered.format.version import MARK, NAME
from mailismus.queue.providers.clustered.index.cluster import Cluster
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.recovery.cluster_files import find_clusters
from mailismus.queue.providers.clustered.recovery.missing_journal import refuse_lost_journal
from mailismus.queue.providers.clustered.recovery.newer_formats import refuse_newer_clusters
from mailismus.queue.providers.clustered.recovery.ownership import refuse_foreign
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue, load
from mailismus.queue.providers.clustered.recovery.salvage import salvage
from mailismus.spool.link_probe import probe_links
from mailismus.spool.quarantine import keep_corrupt
from mailismus.spool.silo import SILO_NAMES

_log = Logger()


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


def open_queue(
    settings: QueueSettings, disk: IDisk, files: IWorker, reactor: IReactorTime, random_bytes: RandomBytes
) -> Opened:
    """Open it. Raises `StartError` with what an administrator must do."""
    try:
        _refuse_newer_journal(settings, disk)
        refuse_foreign(disk, settings.rootpath)
        refuse_missing_areas(settings, disk)
        make_queue(settings, disk)
        locks = lock_roots(disk, (settings.rootpath, settings.spool.rootpath))
        return open_locked(settings, disk, locks, files, reactor, random_bytes)
    except NewerFormat as error:
        raise StartError(os.EX_DATAERR, str(error)) from error
    except PermissionError as error:
        raise StartError(os.EX_NOPERM, f"the queue can't be opened: {error}") from error
    except OSError as error:
        raise StartError(
            os.EX_IOERR, f"the queue can't be opened: {error}; mailismus fsck tells what is wrong with it"
        ) from error
    except MemoryError as error:
        text = "the queue can't be opened: a file of it does not fit into memory; mailismus fsck tells which is too long"
        raise StartError(os.EX_OSERR, text) from error


def open_locked(
    settings: QueueSettings,
    disk: IDisk,
    locks: list[ILock],
    files: IWorker,
    reactor: IReactorTime,
    random_bytes: RandomBytes,
) -> Opened:
    """Open a queue whose directories are made and whose locks (of queue and spool) are held; on failure they are given up.
    Raises `StartError`, `NewerFormat`, `OSError`."""
    locations: Locations | None = None
    try:
        newest_cluster = refuse_newer_clusters(disk, settings.rootpath)
        locations = remember(settings, disk, locks)
        if settings.spool.hardlinks:
            probe_links(disk, settings.spool.rootpath)
        return _open_journal(settings, disk, locations, files, reactor, random_bytes, newest_cluster)
    except BaseException:
        if locations is not None:
            locations.release()
        for lock in locks:
            lock.release()
        raise


def _refuse_newer_journal(settings: QueueSettings, disk: IDisk) -> None:
    """Raise `NewerFormat` where a newer program has written to the journal, before anything is made, and before anything is
    said of directories that a newer format may not have."""
    if disk.exists(settings.rootpath):
        check_safe(disk, settings.rootpath)
        refuse_newer_journal(disk, os.path.join(settings.rootpath, "journal"))


def refuse_missing_areas(settings: QueueSettings, disk: IDisk) -> None:
    """Refuse to start without the directory of an area that the queue has had: its entries would be gone, and their message
    files would be removed as strays. All areas are made before the first segment of the journal. Raises `StartError`,
    `OSError`, having changed nothing."""
    if not disk.exists(settings.rootpath):
        return
    check_safe(disk, settings.rootpath)
    journal = os.path.join(settings.rootpath, "journal")
    areas = [os.path.join(settings.rootpath, area.value) for area in Area]
    missing = next((path for path in areas if not disk.exists(path)), None)
    if missing is None or not disk.exists(journal):
        return
    if any(name.endswith(SEGMENT_SUFFIX) for name in disk.list_directory(journal)):
        text = (
            f"{missing} is gone, with all entries that were in it: move it back, or mount it; "
            "or run mailismus fsck --repair, which goes on without it and keeps the messages"
        )
        raise StartError(os.EX_DATAERR, text)


def make_queue(settings: QueueSettings, disk: IDisk) -> None:
    """Make what is missing of the directories of queue and spool, refuse what is unsafe. Raises `StartError`, `OSError`."""
    make_directories(disk, settings.rootpath, QUEUE_DIRECTORIES)
    make_directories(disk, settings.spool.rootpath, SILO_NAMES)


def _open_journal(
    settings: QueueSettings,
    disk: IDisk,
    locations: Locations,
    files: IWorker,
    reactor: IReactorTime,
    random_bytes: RandomBytes,
    newest_cluster: int,
) -> Opened:
    """`newest_cluster`: the highest format of a cluster."""
    loaded = load(disk, os.path.join(settings.rootpath, "journal"))
    if newest_cluster >= FORMAT_WITH_WORDS:
        loaded.note_words()
    try:
        refuse_lost_journal(loaded, disk, settings)
        _mark(loaded, disk, settings.rootpath)
        _set_aside(loaded, disk, os.path.join(settings.rootpath, "corrupt"))
    except BaseException:
        loaded.journal.close()
        raise
    pool, writer = begin_journal(
        settings, disk, loaded, files, reactor, random_bytes, Reuse.WHAT_IS_FREE, presence=locations.journal
    )
    try:
        youngs = list(loaded.youngs.values())
        resting, highest = _open_clusters(loaded, disk, settings.rootpath)
    except BaseException:
        _close(loaded, pool, writer)
        raise
    if youngs or resting.clusters:
        _log.info(
            "Found {count} messages in the journal and {clusters} clusters.",
            count=len(youngs),
            clusters=len(resting.clusters),
        )
    aside = len(loaded.journal.damages) + len(loaded.bad_lines)
    return Opened(pool, writer, SpoolIds(writer.epoch), youngs, resting, highest + 1, aside, locations)


def _mark(loaded: ReplayedQueue, disk: IDisk, queue_path: str) -> None:
    """Say durably whose queue this is, before its first segment is written. Raises `StartError`, `OSError`."""
    try:
        ensure_mark(disk, queue_path, MARK)
    except OSError as error:
        if not loaded.journal.used or error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        # Its journal says whose it is, and a full disk is no reason not to deliver what lies there.
        _log.warn(
            "{path} could not be marked as a queue of provider {name}: {error}", path=queue_path, name=NAME, error=error
        )


class Reuse(enum.Enum):
    """Which segments may be written to."""

    WHAT_IS_FREE = "those that nobody needs any more"
    NOTHING = "new ones alone: what old ones hold may still be looked for"


def begin_journal(
    settings: QueueSettings,
    disk: IDisk,
    loaded: ReplayedQueue,
    files: IWorker,
    reactor: IReactorTime,
    random_bytes: RandomBytes,
    reuse: Reuse,
    beside_epoch: bytes = b"",
    presence: Presence | None = None,
) -> tuple[SegmentPool, JournalWriter]:
    """Go on with this journal: the start's own barrier. `loaded` knows the new places of what its last batch said.
    `beside_epoch`: records that stand in the first batch, where there is no last one to be said again. `presence`: what the
    journal is found by. On failure all of its segments are closed."""
    path = os.path.join(settings.rootpath, "journal")
    try:
        size = segment_size_for(settings.journal.segmentsize, settings.journal.maxsize, disk.space(path).size_bytes)
    except BaseException:
        loaded.journal.close()
        raise
    pool = SegmentPool(disk, path, size, files, reactor, presence)
    writer = JournalWriter(
        disk,
        path,
        pool.take,
        random_bytes,
        last_number=loaded.journal.highest_number,
        last_sequence=loaded.last_sequence,
        presence=presence,
    )
    try:
        writer.epoch = loaded.epoch + 1
        writer.horizon = loaded.sure_horizon
        if loaded.has_words:
            writer.require_format(FORMAT_WITH_WORDS)
        free, freed_by_last = _sort_segments(loaded, writer)
        if reuse is Reuse.WHAT_IS_FREE:
            for segment in free:
                pool.adopt(segment)
        _write_first_batch(loaded, pool, writer, beside_epoch)
        writer.horizon = loaded.horizon
        if reuse is Reuse.WHAT_IS_FREE:
            for segment in freed_by_last:
                pool.adopt(segment)
    except BaseException:
        _close(loaded, pool, writer)
        raise
    return pool, writer


def _close(loaded: ReplayedQueue, pool: SegmentPool, writer: JournalWriter) -> None:
    """Close every segment: the start came to nothing."""
    loaded.journal.close()
    pool.close()
    for segment in (*writer.segments.values(), *writer.spoiled):
        close_read(segment.file)


def _open_clusters(loaded: ReplayedQueue, disk: IDisk, root: str) -> tuple[ClusterIndex, int]:
    """The clusters that count; files of a checkpoint that came to nothing go. That is durable with the next checkpoint,
    which takes a higher number than any file found, and cuts open ones to their committed length. Names are read, files are
    not. Gives the highest number too."""
    leftovers: list[str] = []
    found = list(find_clusters(disk, root, leftovers))
    for path in leftovers:
        disk.unlink(path)
    rescued = salvage(loaded, disk, root, found)
    for cluster_id in found:
        if cluster_id.checkpoint > loaded.checkpoint and cluster_id not in rescued:
            disk.unlink(cluster_id.path(root))
    resting = index_clusters(loaded, root, found, rescued)
    # The journal may still name places in files that an earlier start has removed: those numbers are not used again either.
    named = [place.cluster.checkpoint for place in loaded.owed]
    return resting, max([loaded.checkpoint, *named, *(cluster_id.checkpoint for cluster_id in found)])


def index_clusters(
    loaded: ReplayedQueue, root: str, found: Iterable[ClusterId], rescued: Mapping[ClusterId, Iterable[int]]
) -> ClusterIndex:
    """An index of those of the clusters found that count. `rescued`: see `salvage`."""
    resting = ClusterIndex()
    for cluster_id in found:
        if cluster_id.checkpoint <= loaded.checkpoint or cluster_id in rescued:
            start = slot_start(cluster_id.slot) if cluster_id.slot else None
            length = None if cluster_id in rescued else loaded.lengths.get(cluster_id)
            cluster = Cluster(cluster_id, cluster_id.path(root), length)
            resting.add(cluster, start or 0.0)
            for offset in rescued.get(cluster_id, ()):
                resting.owe(cluster, offset)
    for place in loaded.owed:
        owing = resting.clusters.get(place.cluster)
        if owing is not None:
            resting.owe(owing, place.offset)
    return resting


def _sort_segments(loaded: ReplayedQueue, writer: JournalWriter) -> tuple[list[Segment], list[Segment]]:
    """Those that are needed go to the writer; gives those that are surely free, and those that are free only by the
    checkpoint in the last batch, whose durability nobody knows yet."""
    free = [found.as_segment() for found in loaded.journal.others]
    freed_by_last = []
    for found in loaded.journal.used:
        segment = found.as_segment()
        if segment.last_sequence <= loaded.sure_horizon:
            free.append(segment)
        elif segment.last_sequence <= loaded.horizon:
            freed_by_last.append(segment)
        else:
            writer.segments[segment.number] = segment
    return free, freed_by_last


def _write_first_batch(loaded: ReplayedQueue, pool: SegmentPool, writer: JournalWriter, beside_epoch: bytes) -> None:
    """Say the last batch again, or the epoch where there is none: one barrier, and the start is sure of what it
    found."""
    last, last_segment = loaded.last, loaded.last_segment
    if last is None or last_segment is None:
        records = epoch_record(writer.epoch) + beside_epoch
        pool.ensure(padded_size(len(records)))
        writer.append([records], len(records))
        return
    pool.ensure(padded_size(len(last.records)))
    written = writer.say_again(last.sequence, [last.records], len(last.records))
    assert last_segment.header is not None
    number = last_segment.header.number
    writer.segments[number].last_sequence = last.sequence - 1  # denied there from now on
    for young in loaded.youngs.values():
        if young.segment == number and young.offset >= last.records_offset:
            young.move_to(written.segment, young.offset + written.offset - last.records_offset)


def _set_aside(loaded: ReplayedQueue, disk: IDisk, corrupt_path: str) -> None:
    """What does not check is copied, as found, with a note where from; then the start goes on without it."""
    for segment in loaded.journal.torn:
        _log.warn("The last batch of {path} is not whole: it was never answered, or is damaged since.", path=segment.path)
    damages = loaded.journal.damages
    for damage in damages:
        _log.error(
            "The journal is damaged: {path} at {offset}, {size} bytes; set aside in {corrupt}, the rest goes on.",
            path=damage.path,
            offset=damage.offset,
            size=damage.size_bytes,
            corrupt=corrupt_path,
        )
        found = next(f for f in (*loaded.journal.used, *loaded.journal.others) if f.path == damage.path)
        note = b"from %b at %d\n" % (os.fsencode(damage.path), damage.offset)
        name = f"{os.path.basename(damage.path)}-{damage.offset}"
        keep_corrupt(disk, corrupt_path, name, note, found.file.read_at(damage.offset, damage.size_bytes))
    for bad in loaded.bad_lines:
        _log.error("A record of the journal does not check; set aside in {corrupt}.", corrupt=corrupt_path)
        keep_corrupt(disk, corrupt_path, f"record-{zlib.crc32(bad):08x}", b"from a record of the journal\n", bad)
