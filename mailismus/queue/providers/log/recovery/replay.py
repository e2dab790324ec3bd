"""Replay of the working suffix: which envelopes records were written about, in order.

    start, delivery -> work is going on; finish -> garbage; moved -> garbage, and its records hold for another

*Not here*: the envelopes themselves (`read.envelopes`): most of them lie before the suffix.
"""

from __future__ import annotations

from contextlib import suppress

import attrs

from mailismus.errors import Corrupt
from mailismus.journal.batch import Batch
from mailismus.journal.load import ReplayedJournal, load_into
from mailismus.journal.replay import FoundSegment, Journal
from mailismus.journal.writer import Written
from mailismus.queue.providers.log.format.record import (
    ENVELOPES,
    LogPlace,
    LogRecord,
    LogRecordKind,
    epoch_record,
    parse_delivery,
    parse_epoch,
    parse_places,
    read_records,
)
from mailismus.queue.providers.log.recovery.free_segments import leave_out_free


@attrs.define
class Work:
    """What the suffix says about one envelope. `pin`: sequence number of the first record."""

    pin: int
    is_garbage: bool = False
    gone: set[int] = attrs.field(factory=set)
    """Numbers of entries that have left it."""


@attrs.define
class ReplayedLog(ReplayedJournal):
    """Result of a replay."""

    works: dict[LogPlace, Work] = attrs.field(factory=dict)
    highest_spool_epoch: int = 0
    _moved: dict[LogPlace, LogPlace] = attrs.field(factory=dict)
    last_shift: tuple[int, int, int] | None = None
    """Of the last batch, where it was written again: its sequence number, the new segment's number, and how many bytes
    behind its former offset it lies."""

    # `ReplaySink`

    def read_bounds(self, batch: Batch) -> None:
        with suppress(Corrupt):
            for record in read_records(batch.records, b"E"):
                self.note_epoch(parse_epoch(record.text))

    def apply(self, segment: FoundSegment, batch: Batch) -> None:
        try:
            self._apply(batch)
        except Corrupt:
            self.bad_records.append(batch.records)

    def highest_epoch(self) -> int:
        return self.highest_spool_epoch

    def _apply(self, batch: Batch) -> None:
        sequence = batch.sequence
        moving: LogPlace | None = None
        for record in read_records(batch.records):
            kind = record.kind
            if kind is LogRecordKind.MOVED:
                moving = next(iter(self._places(record)), None)
            elif kind in ENVELOPES:
                self.highest_spool_epoch = max(self.highest_spool_epoch, record.spool_id >> 32)
                if moving is not None:
                    self._move(moving, LogPlace(sequence, record.offset), sequence)
                    moving = None
            elif kind is LogRecordKind.START:
                for place in self._places(record):
                    self._work(place, sequence)
            elif kind is LogRecordKind.FINISH:
                for place in self._places(record):
                    self._work(place, sequence).is_garbage = True
            elif kind is LogRecordKind.DELIVERY:
                delivery = parse_delivery(record.text)
                if delivery is None:
                    self.bad_records.append(record.text)
                else:
                    self._work(delivery[0], sequence).gone.update(delivery[1])

    def _places(self, record: LogRecord) -> list[LogPlace]:
        places = parse_places(record.text)
        if places is None:
            self.bad_records.append(record.text)
            return []
        return places

    def _work(self, place: LogPlace, sequence: int) -> Work:
        """The work on the envelope that stands for the one of this place now. It needs the moves that lead there, too."""
        while place in self._moved:
            place = self._moved[place]
            sequence = min(sequence, place.sequence)
        work = self.works.get(place)
        if work is None:
            work = self.works[place] = Work(sequence)
        return work

    def _move(self, old: LogPlace, new: LogPlace, sequence: int) -> None:
        while old in self._moved:
            old = self._moved[old]
        work = self.works.get(old)
        if work is not None:  # else it waited, and waits again
            self.works[new] = Work(work.pin, work.is_garbage, set(work.gone))
        self.works[old] = Work(sequence, is_garbage=True)
        self._moved[old] = new

    # `JournalOwner`

    def epoch_record(self, epoch: int) -> bytes:
        return epoch_record(epoch)

    def last_batch_moved(self, written: Written) -> None:
        last = self.last
        assert last is not None
        self.last_shift = last.sequence, written.segment, written.offset - last.records_offset


def load_suffix(journal: Journal) -> ReplayedLog:
    """Replay the suffix of this journal: the batches above its horizon. Raises OSError."""
    leave_out_free(journal)
    found = ReplayedLog(journal)
    load_into(found, found)
    return found
