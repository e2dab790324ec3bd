"""History: everything that the journal still holds, needed or not. Lines and messages lost elsewhere may be found here.

Segments are reused in order, so records that a checkpoint has applied stay in the journal for a while; a batch whose CRC
checks proves its records. From the last gap on the history is complete: an entry that began there and was not settled since
is live, and must be in a cluster or in the memtable.

Memory: 20 bytes a message, some 200 an entry that lives.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

import attrs

from mailismus.errors import Corrupt
from mailismus.journal.batch import Batch
from mailismus.journal.replay import FoundSegment, Journal, read_batches
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import parse_line
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.record import (
    Record,
    RecordKind,
    parse_checkpoint,
    parse_placed,
    read_records,
)
from mailismus.spool.message_file import PIECE_SIZE

_OFFSET_BITS = 40
_AREAS = tuple(Area)
_AREA_BITS = len(_AREAS).bit_length()
_MOST_DIGITS = 9
_HEAD_BYTES = 64
"""Bytes at the start of a line that always hold its queue id."""


@attrs.frozen
class HeldMessage:
    """The content of a message in the journal."""

    segment: FoundSegment
    offset: int
    size_bytes: int

    def pieces(self) -> Iterator[bytes]:
        """Its bytes. Raises OSError."""
        for at in range(0, self.size_bytes, PIECE_SIZE):
            yield self.segment.file.read_at(self.offset + at, min(PIECE_SIZE, self.size_bytes - at))


class JournalHistory:
    """Index of all that the segments of a journal hold, read once. Raises OSError."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._ids, self._places, self._sizes = array("Q"), array("Q"), array("L")
        self.live: dict[QueueId, int] = {}
        """Entries that are live by the complete part of the history, and where their lines are (`recipient_line`)."""
        self._start = 1
        """The first batch of the complete part."""
        self._checkpoints: list[tuple[int, int]] = []
        self._read()
        order = sorted(range(len(self._ids)), key=self._ids.__getitem__)
        self._ids, self._places, self._sizes = (
            array(column.typecode, (column[at] for at in order)) for column in (self._ids, self._places, self._sizes)
        )

    def _read(self) -> None:
        expected = 1
        for index, segment in enumerate(self._journal.used):
            assert segment.header is not None
            for batch in read_batches(segment.file.read_at(0, segment.size_bytes), segment.header):
                if batch.sequence > segment.limit:
                    break
                if batch.sequence < expected:
                    continue  # rewritten in a new segment
                if batch.sequence > expected:
                    self._begin_anew(batch.sequence)
                expected = batch.sequence + 1
                try:
                    for record in read_records(batch.records):
                        self._note(record, index, batch)
                except Corrupt:
                    self._begin_anew(expected)  # the check of the journal reports it

    def _begin_anew(self, sequence: int) -> None:
        self.live.clear()
        self._checkpoints.clear()
        self._start = sequence

    def _note(self, record: Record, index: int, batch: Batch) -> None:
        match record.kind:
            case RecordKind.CHECKPOINT:
                checkpoint = parse_checkpoint(record.text)
                if checkpoint is not None:
                    self._checkpoints.append((checkpoint.number, checkpoint.horizon))
            case RecordKind.SETTLED:
                for queue_id, _ in parse_placed(record.text):
                    self.live.pop(queue_id, None)
            case RecordKind.MESSAGE | RecordKind.FILE | RecordKind.LINES:
                start = batch.records_offset + record.content_offset - len(record.text)
                self._note_lines(record, index << _OFFSET_BITS | start)
                if record.kind is RecordKind.MESSAGE:
                    self._ids.append(record.spool_id)
                    self._places.append(index << _OFFSET_BITS | batch.records_offset + record.content_offset)
                    self._sizes.append(record.content_size)

    def _note_lines(self, record: Record, place: int) -> None:
        if record.area is None:
            return
        area = _AREAS.index(record.area)
        for line in record.text.split(b"\n")[:-1]:
            number = line[:_HEAD_BYTES].split(b" ", 4)[3:4]
            digits = number[0].partition(b"/")[0] if number else b""
            if digits.isdigit() and len(digits) <= _MOST_DIGITS:
                queue_id = QueueId(record.spool_id, int(digits))
                self.live[queue_id] = place << _AREA_BITS | area
            place += len(line) + 1

    def covers(self, checkpoint: int) -> bool:
        """Whether it holds every line that checkpoints from this number on have written."""
        return self._start == 1 or any(
            number < checkpoint and horizon >= self._start - 1 for number, horizon in self._checkpoints
        )

    def place(self, encoded: int) -> tuple[str, int]:
        """File and offset of a line."""
        place = encoded >> _AREA_BITS
        return self._journal.used[place >> _OFFSET_BITS].path, place & (1 << _OFFSET_BITS) - 1

    def line(self, encoded: int, longest: int) -> tuple[Message, Entry] | None:
        """Message and entry of a line; None: the line does not check. Raises OSError."""
        place, area = encoded >> _AREA_BITS, _AREAS[encoded & (1 << _AREA_BITS) - 1]
        file = self._journal.used[place >> _OFFSET_BITS].file
        return parse_line(file.read_at(place & (1 << _OFFSET_BITS) - 1, longest).partition(b"\n")[0], area)

    def area(self, encoded: int) -> Area:
        """Area of the entry of a line."""
        return _AREAS[encoded & (1 << _AREA_BITS) - 1]

    def find_content(self, spool_id: SpoolId, size_bytes: int | None) -> HeldMessage | None:
        """The content of this message, if the journal holds one of this size (None: of any size)."""
        at = bisect_left(self._ids, spool_id)
        while at < len(self._ids) and self._ids[at] == spool_id:
            if size_bytes in (None, self._sizes[at]):
                segment = self._journal.used[self._places[at] >> _OFFSET_BITS]
                return HeldMessage(segment, self._places[at] & (1 << _OFFSET_BITS) - 1, self._sizes[at])
            at += 1
        return None
