"""Opening: how a start goes on with the journal that it has replayed. Blocks.

*Rules* (explored state by state in the queue's model): **a start acts on nothing before its own barrier**. After
`kill -9` the end of the journal may be in the page cache alone; a start that believed it and then lost power would lose
mail. So it begins a new segment whose header raises the epoch and denies the last batch found, writes that batch again
there, and syncs. Until then it reuses only segments that were free by the checkpoint before the newest.

Where there is no free segment, and no space for one, a provider may let a start cut off what segments have behind their last
batch: most of the segment that the start before has begun. What was acknowledged is not touched.

Nothing it does is needed twice or harmful twice: a start that is stopped anywhere begins anew.

*Not here*: locks and directories, what the records mean.
"""

from __future__ import annotations

import enum
from typing import Protocol

import attrs
from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import JournalSettings
from mailismus.disk.interface import IDisk, close_read
from mailismus.disk.presence import Presence
from mailismus.disk.worker import IWorker
from mailismus.journal.batch import padded_size
from mailismus.journal.load import ReplayedJournal
from mailismus.journal.pool import SegmentPool
from mailismus.journal.refusals import is_full
from mailismus.journal.segment import Segment, segment_size_for
from mailismus.journal.spool_ids import SpoolIds
from mailismus.journal.writer import JournalWriter, RandomBytes, Written


class Reuse(enum.Enum):
    """Which segments may be written to."""

    WHAT_IS_FREE = "those that nobody needs any more"
    NOTHING = "new ones alone: what old ones hold may still be looked for"
    WHAT_NEVER_COUNTED = "those without a batch: what lies below the horizon is needed too"


class JournalOwner(Protocol):
    """The provider whose records a journal holds, as far as the first batch needs it."""

    def epoch_record(self, epoch: int) -> bytes:
        """The record that says that this epoch may be used for spool ids."""

    def last_batch_moved(self, written: Written) -> None:
        """The last batch found is at this place now: what it holds is read there from now on."""


def close_segments(pool: SegmentPool, writer: JournalWriter) -> None:
    """Close every segment of a journal that no thread works on any more."""
    pool.close()
    for segment in (*writer.segments.values(), *writer.spoiled):
        close_read(segment.file)


@attrs.frozen
class OpenJournal:
    """A journal that can be written."""

    pool: SegmentPool
    writer: JournalWriter
    spool_ids: SpoolIds
    """Ids of an epoch that no earlier start has used."""

    def close(self) -> None:
        """Close every segment: after a start that failed, or where no server goes on."""
        close_segments(self.pool, self.writer)


@attrs.frozen
class JournalOpener:
    """Opens the journal of one directory for writing. `worker`: creates and removes segments."""

    disk: IDisk
    directory: str
    settings: JournalSettings
    worker: IWorker
    reactor: IReactorTime
    random_bytes: RandomBytes
    has_marks: bool = False
    """The records have marks (`journal.frame`)."""
    keeps_for_a_start: bool = False
    """A free segment is kept for the barrier of the next start, which needs no free space then. A start that finds none, nor
    space for one, cuts segments behind their last batch."""

    def begin_journal(
        self,
        found: ReplayedJournal,
        owner: JournalOwner,
        reuse: Reuse,
        beside_epoch: bytes = b"",
        presence: Presence | None = None,
    ) -> OpenJournal:
        """Go on with the journal found: the start's own barrier. `beside_epoch`: records that stand in the first batch,
        where there is no last one to be written again. `presence`: the names that must still lead to directory and lock. On
        failure all segments are closed. Raises OSError."""
        try:
            opened = self._make(found, presence)
        except BaseException:
            found.journal.close()
            raise
        pool, writer = opened.pool, opened.writer
        try:
            free, freed_by_last = _sort_segments(found, writer, reuse)
            if reuse is not Reuse.NOTHING:
                for segment in free:
                    pool.adopt(segment)
            records = found.last.records if found.last is not None else owner.epoch_record(writer.epoch) + beside_epoch
            try:
                pool.ensure(padded_size(len(records)))
            except OSError as error:
                if not (self.keeps_for_a_start and is_full(error) and _cut_segments(found, writer)):
                    raise
                pool.ensure(padded_size(len(records)))
            _write_first_batch(found, owner, writer, records)
            writer.move_horizon(found.horizon)
            if reuse is Reuse.WHAT_IS_FREE:
                for segment in freed_by_last:
                    pool.adopt(segment)
        except BaseException:
            found.journal.close()
            opened.close()
            raise
        return opened

    def _make(self, found: ReplayedJournal, presence: Presence | None) -> OpenJournal:
        """Pool and writer, which have no segment yet."""
        disk, settings = self.disk, self.settings
        # The process that made a segment may have been killed before its sync. A start that finds free segments makes none,
        # and syncs their names nowhere else; a segment that it makes needs a sync of its own, behind this one.
        disk.sync_directory(self.directory)
        size = segment_size_for(settings.segmentsize, settings.maxsize, disk.space(self.directory).size_bytes)
        pool = SegmentPool(
            disk, self.directory, size, self.worker, self.reactor, presence, for_a_start=int(self.keeps_for_a_start)
        )
        writer = JournalWriter(
            disk,
            self.directory,
            pool.take,
            self.random_bytes,
            last_number=found.journal.highest_number,
            last_sequence=found.last_sequence,
            presence=presence,
            has_marks=self.has_marks,
        )
        writer.epoch = found.epoch + 1
        writer.horizon = found.sure_horizon
        writer.require_format(found.format)
        return OpenJournal(pool, writer, SpoolIds(writer.epoch))


def _sort_segments(found: ReplayedJournal, writer: JournalWriter, reuse: Reuse) -> tuple[list[Segment], list[Segment]]:
    """Those that are needed go to the writer. Return those that are surely free, and those that are free only by the
    checkpoint in the last batch, whose durability nobody knows yet."""
    free = [other.as_segment() for other in found.journal.others]
    freed_by_last = []
    for used in found.journal.used:
        segment = used.as_segment()
        if reuse is Reuse.WHAT_NEVER_COUNTED:
            writer.segments[segment.number] = segment
        elif segment.last_sequence <= found.sure_horizon:
            free.append(segment)
        elif segment.last_sequence <= found.horizon:
            freed_by_last.append(segment)
        else:
            writer.segments[segment.number] = segment
    return free, freed_by_last


def _cut_segments(found: ReplayedJournal, writer: JournalWriter) -> bool:
    """Cut off what segments in use have behind their last batch; return whether that was anything. Raises OSError."""
    is_shorter = False
    for segment in found.journal.used:
        assert segment.header is not None
        number = segment.header.number
        if number in writer.segments and segment.cut():
            writer.segments[number] = segment.as_segment()
            is_shorter = True
    return is_shorter


def _write_first_batch(found: ReplayedJournal, owner: JournalOwner, writer: JournalWriter, records: bytes) -> None:
    """Write the last batch again, or the epoch where there is none: one barrier, and the start is sure of what it found."""
    last, last_segment = found.last, found.last_segment
    if last is None or last_segment is None:
        writer.append([records], len(records))
        return
    written = writer.say_again(last.sequence, [records], len(records))
    assert last_segment.header is not None
    writer.segments[last_segment.header.number].last_sequence = last.sequence - 1  # denied there from now on
    owner.last_batch_moved(written)
