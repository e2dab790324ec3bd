"""Opening a log-structured queue: directories, locks, the log, messages.

Blocking, before the reactor runs: whatever can refuse a start is tried here. Nothing is acted on before the start's own
barrier (`journal.opening`). A start that is stopped anywhere begins anew.
"""

from __future__ import annotations

import os
import zlib

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock, close_read
from mailismus.disk.worker import IWorker
from mailismus.journal.batch import DENIES_NOTHING
from mailismus.journal.opening import JournalOpener, Reuse, close_segments
from mailismus.journal.pool import SegmentPool
from mailismus.journal.replay import Damage, Journal, named_number, survey
from mailismus.journal.spool_ids import SpoolIds
from mailismus.journal.writer import JournalWriter, RandomBytes
from mailismus.queue.files.directories import check_safe, lock_roots, make_directories
from mailismus.queue.files.journal_damage import quarantine_damage
from mailismus.queue.files.locations import Locations, remember
from mailismus.queue.files.missing_journal import refuse_lost_journal
from mailismus.queue.files.newer_formats import refuse_newer_journal
from mailismus.queue.files.refusals import errors_refuse_start
from mailismus.queue.providers.log.format.positions import BLOCK, NAME, NEW_NAME, Positions, decode_positions
from mailismus.queue.providers.log.format.version import LOG, OWNERSHIP
from mailismus.queue.providers.log.read.quarantine import keep_damages
from mailismus.queue.providers.log.recovery.denied import mark_denied
from mailismus.queue.providers.log.recovery.found import FoundLog, find_messages
from mailismus.queue.providers.log.recovery.positions_file import PositionsFile
from mailismus.queue.providers.log.recovery.replay import ReplayedLog, load_suffix
from mailismus.spool.listing import find_message_files
from mailismus.spool.quarantine import keep_corrupt
from mailismus.spool.silo import SILO_NAMES

DIRECTORIES = (LOG, "corrupt", "state")
"""The directories in the queue's directory."""

SEGMENTS_OF_A_JOURNAL = 4
"""As many segments a journal's limit has room for at least (`journal.segment.segment_size_for`)."""

_log = Logger()


@attrs.frozen
class OpenedLog:
    """An open queue: what was found, and everything a provider needs to go on. `positions`: the number of those found."""

    pool: SegmentPool
    writer: JournalWriter
    spool_ids: SpoolIds
    found: FoundLog
    positions: int
    ignored: tuple[int, ...]
    set_aside: int
    """Batches and records that did not check."""
    locations: Locations

    def release(self) -> None:
        """Give up the locks."""
        self.locations.release()

    def close_files(self) -> None:
        """Close the segments. Nothing works on them any more; a server leaves that to the end of its process."""
        close_segments(self.pool, self.writer)


def open_queue(
    settings: QueueSettings, disk: IDisk, files: IWorker, reactor: IReactorTime, random_bytes: RandomBytes
) -> OpenedLog:
    """Open it. Raises `StartError` with what an administrator must do."""
    with errors_refuse_start():
        root, spool = settings.rootpath, settings.spool.rootpath
        if disk.exists(root):
            check_safe(disk, root)
            refuse_newer_journal(disk, os.path.join(root, LOG))
        OWNERSHIP.refuse_foreign(disk, root)
        make_directories(disk, root, DIRECTORIES)
        make_directories(disk, spool, SILO_NAMES)
        locks = lock_roots(disk, (root, spool))
        return open_locked(settings, disk, locks, files, reactor, random_bytes)


def open_locked(
    settings: QueueSettings,
    disk: IDisk,
    locks: list[ILock],
    files: IWorker,
    reactor: IReactorTime,
    random_bytes: RandomBytes,
) -> OpenedLog:
    """Open a queue whose locks are held; on failure they are given up."""
    opener = opener_of(settings, disk, files, reactor, random_bytes)
    locations: Locations | None = None
    try:
        locations = remember(settings, disk, locks, DIRECTORIES)
        remove_new_positions(disk, settings.rootpath)
        return _open(settings, opener, locations)
    except BaseException:
        if locations is not None:
            locations.release()
        for lock in locks:
            lock.release()
        raise


def opener_of(
    settings: QueueSettings, disk: IDisk, files: IWorker, reactor: IReactorTime, random_bytes: RandomBytes
) -> JournalOpener:
    """The opener of the log. Its length has no limit, so no share of one bounds its segments."""
    journal = attrs.evolve(settings.journal, maxsize=SEGMENTS_OF_A_JOURNAL * settings.journal.segmentsize)
    directory = os.path.join(settings.rootpath, LOG)
    return JournalOpener(*(disk, directory, journal, files, reactor, random_bytes), has_marks=True, keeps_for_a_start=True)


def _open(settings: QueueSettings, opener: JournalOpener, locations: Locations) -> OpenedLog:
    disk = opener.disk
    positions = read_positions(disk, settings.rootpath)
    if positions is not None and positions.ignored:
        # They may not be durable: the horizon in the start's own header would be, and what is ignored would live again.
        PositionsFile(disk, settings.rootpath).write(positions)
    replayed = _replay(opener, positions)
    try:
        refuse_lost_journal(replayed, opener.directory, find_message_files(disk, settings.spool.rootpath))
        OWNERSHIP.mark(disk, settings.rootpath, is_known=bool(replayed.journal.used))
        set_aside = quarantine_damage(replayed, disk, os.path.join(settings.rootpath, "corrupt"))
    except BaseException:
        replayed.journal.close()
        raise
    journal = opener.begin_journal(replayed, replayed, Reuse.WHAT_NEVER_COUNTED, presence=locations.journal)
    try:
        mark_denied(replayed)
        found = find_messages(replayed, positions)
        _keep_damages(disk, found, os.path.join(settings.rootpath, "corrupt"))
    except BaseException:
        journal.close()
        raise
    if found.messages:
        _log.info("Found {count} messages in the log.", count=len(found.messages))
    number, ignored = (positions.number, positions.ignored) if positions is not None else (0, ())
    return OpenedLog(journal.pool, journal.writer, journal.spool_ids, found, number, ignored, set_aside, locations)


def _keep_damages(disk: IDisk, found: FoundLog, corrupt_path: str) -> None:
    """Quarantine what does not check in the segments that were read for work, and tell what is missing."""
    for damage in found.damages:
        if damage.stretches or damage.bad:
            segment = damage.segment
            keep_damages(disk, corrupt_path, segment.path, segment.file, damage.stretches, damage.bad)
    for place in sorted(found.missing):
        _log.error(
            "The log is damaged: the envelope at offset {offset} of batch {sequence} is not in it. Work on it was going on.",
            offset=place.offset,
            sequence=place.sequence,
        )


def _replay(opener: JournalOpener, positions: Positions | None) -> ReplayedLog:
    journal = survey(opener.disk, opener.directory)
    deny_copies(journal)
    note_cut(journal)
    try:
        if positions is not None:
            journal.know_horizon(positions.suffix - 1)
        replayed = load_suffix(journal)
        if positions is None:
            _do_without_positions(opener.disk, os.path.dirname(opener.directory), journal)
        return replayed
    except BaseException:
        journal.close()
        raise


def deny_copies(journal: Journal) -> None:
    """Let a header that is derived, because its own does not check, deny what every header denies: a batch that was written
    again lies behind it."""
    limit = DENIES_NOTHING
    for segment in reversed(journal.used):
        segment.limit_to(limit)
        assert segment.header is not None
        last_good = segment.header.first_sequence - 1 if segment.is_guessed else segment.header.last_good
        limit = min(limit, last_good)


def note_cut(journal: Journal) -> None:
    """Note segments that were cut down so far that no batch is left: they are made in their whole length. One that no later
    segment follows, or that a later one denies, may be so after a crash."""
    headers = [segment.header for segment in journal.used if segment.header is not None]
    for other in journal.others:
        size, header = other.size_bytes, other.header
        number = header.number if header is not None else named_number(other.path)
        limits = [later.last_good for later in headers if later.number > number]
        if (header is None and not other.is_unreadable) or not limits or not (size % BLOCK or size < 2 * BLOCK):
            continue
        if header is None or header.first_sequence <= min(limits):
            journal.damages.append(Damage(other.path, 0, size, DENIES_NOTHING))


def _do_without_positions(disk: IDisk, root: str, journal: Journal) -> None:
    """Where no positions tell how far segments are free, batches that are missing between two segments are no damage: whole
    segments were freed there. Work that was going on keeps its segments, so they held nothing that is needed. Raises
    OSError."""
    begins = {(segment.path, segment.header.first_sequence) for segment in journal.used if segment.header is not None}
    damages = [one for one in journal.damages if one.size_bytes or (one.path, one.before) not in begins]
    path = os.path.join(root, NAME)
    is_there = disk.exists(path)
    if not is_there and len(damages) == len(journal.damages):
        return  # none have been written yet
    journal.explain(damages)
    data = b""
    if is_there:
        file = disk.open(path)
        try:
            data = file.read_at(0, 2 * BLOCK)
        finally:
            close_read(file)
    corrupt = os.path.join(root, "corrupt")
    keep_corrupt(disk, corrupt, f"{NAME}-{zlib.crc32(data):08x}", b"from %b\n" % os.fsencode(path), data)
    _log.error(
        "{path} is gone, or does not check; set aside in {corrupt}. All of the log is read.", path=path, corrupt=corrupt
    )


def remove_new_positions(disk: IDisk, root: str) -> None:
    """Remove the file of positions that an earlier run had not finished. Raises OSError."""
    path = os.path.join(root, NEW_NAME)
    if disk.exists(path):
        disk.unlink(path)


def read_positions(disk: IDisk, root: str) -> Positions | None:
    """Return the positions of the queue in this directory; None: there are none, or they do not check. Raises OSError."""
    path = os.path.join(root, NAME)
    if not disk.exists(path):
        return None
    file = disk.open(path)
    try:
        return decode_positions(file.read_at(0, 2 * BLOCK))
    finally:
        close_read(file)
