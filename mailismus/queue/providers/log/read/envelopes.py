"""Envelopes: read from a segment, batch by batch. Blocks."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator

import attrs

from mailismus.disk.interface import IFile
from mailismus.errors import Corrupt
from mailismus.journal.batch import BATCH_HEAD_SIZE, BLOCK, Batch, SegmentHeader, claimed_size, decode_batch, padded_size
from mailismus.journal.frame import FRAME
from mailismus.queue.files.recipient_line import parse_line
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.log.format.record import (
    ENVELOPES,
    ContentPlace,
    LogPlace,
    LogRecord,
    LogRecordKind,
    read_records,
    split_replacement,
)
from mailismus.queue.providers.log.index.amount import NOTHING, RestAmount

WINDOW = 256 << 10
"""Bytes that are read at once."""

Wanted = Callable[[LogPlace, LogRecord], bool]
"""Whether an envelope is wanted, by its place and the head of its record."""


@attrs.frozen
class SeenEnvelope:
    """One envelope in a segment. `entries`: all of its lines that check."""

    place: LogPlace
    segment: int
    offset: int
    """Of its record in the segment's file."""
    batch: int
    """Offset of its batch there."""
    interval: int
    message: Message
    entries: list[Entry]


@attrs.frozen
class FoundEnvelope(SeenEnvelope):
    """The same with what must be known to load it. `content`: None: a message file."""

    is_marked: bool
    content: ContentPlace | None
    record_bytes: int
    """Of its records, without a content among them."""

    def amounts(self) -> dict[Area, RestAmount]:
        """What a count must know of its entries, by area."""
        found: dict[Area, RestAmount] = {}
        one = RestAmount.of(1, self.message.recipient_count, self.message.stored_bytes)
        for entry in self.entries:
            found[entry.area] = found.get(entry.area, NOTHING).plus(one)
        return found


@attrs.frozen
class Stretch:
    """Batches of one segment: those from the offset `begin` up to `end`, which check, with sequence numbers above `behind`
    and up to `last`. `is_exact`: the last of them has that number, for sure."""

    file: IFile
    header: SegmentHeader
    begin: int
    end: int
    behind: int
    last: int
    is_exact: bool = False


class BatchReader:
    """Reads the batches of a stretch, in pieces of about `WINDOW`."""

    def __init__(self, stretch: Stretch) -> None:
        self._stretch = stretch
        self.offset = stretch.begin
        """Where the next batch begins."""
        self.skipped: list[tuple[int, int]] = []
        """Bytes between two batches, or before the first one, that do not check: begin and end of each stretch."""
        self.read_end = stretch.begin
        """Where the last batch ended."""
        self._behind = max(stretch.behind, stretch.header.first_sequence - 1)
        self._newest = stretch.header.first_sequence - 1 if stretch.begin == BLOCK else None
        """Sequence number of the last batch found; None: none was."""
        self._data, self._data_at = b"", stretch.begin

    def next(self) -> Batch | None:
        """Return the next batch, its offset that in the file; None: there is none. Bytes that do not check are passed over.
        Raises OSError."""
        stretch = self._stretch
        while self.offset < stretch.end:
            batch = self._decode()
            if batch is None:
                self.offset += BLOCK
                continue
            if not self._follows(batch):
                self.offset += BLOCK  # a copy of another one: written over what was here
                continue
            self._newest = batch.sequence
            if batch.offset > self.read_end and batch.sequence <= stretch.last:
                self.skipped.append((self.read_end, batch.offset))
            self.offset = batch.end
            if batch.sequence > stretch.last:
                self.offset = stretch.end
                return None
            self.read_end = batch.end
            if batch.sequence > self._behind:
                self._behind = batch.sequence
                return batch
        return None

    def _follows(self, batch: Batch) -> bool:
        """Whether it can stand here: sequence numbers rise by one, but where bytes between do not check."""
        if self._newest is None:
            return True
        expected = self._newest + 1
        return batch.sequence == expected or (batch.sequence > expected and batch.offset > self.read_end)

    def is_next(self, sequence: int) -> bool:
        """Whether a batch of this number may stand at `offset`, if none is missing, and belongs to the stretch."""
        return self._newest in (None, sequence - 1) and sequence <= self._stretch.last and self.offset == self.read_end

    def pass_over(self, sequence: int, end: int) -> bool:
        """Go on at `end`: the batch before it, of this number, was read otherwise. Return whether it is wanted."""
        self._newest, self.offset, self.read_end = sequence, end, end
        if sequence <= self._behind:
            return False
        self._behind = sequence
        return True

    def go_back(self, offset: int, sequence: int) -> None:
        """Go back to the batch at this offset, of this number, which was passed over last."""
        self._newest, self.offset, self.read_end = sequence - 1, offset, offset
        self._behind = sequence - 1

    @property
    def behind(self) -> int:
        """Sequence number of the last batch read, or a lower one."""
        return self._behind

    def _decode(self) -> Batch | None:
        """The batch at `offset`, if it checks."""
        nonce = self._stretch.header.nonce
        at = self._at(BATCH_HEAD_SIZE)
        if len(self._data) < at + BATCH_HEAD_SIZE:
            return None
        size = padded_size(claimed_size(self._data, at))
        if len(self._data) < at + size and not _may_be(self._data, at, nonce):
            return None
        at = self._at(size)
        batch = decode_batch(self._data, at, nonce)
        return None if batch is None else attrs.evolve(batch, offset=self.offset)

    def _at(self, size: int) -> int:
        """Have so many bytes from `offset` on at hand, if they are there; return where they begin."""
        at = self.offset - self._data_at
        if at + size > len(self._data):
            most = max(size, min(WINDOW, self._stretch.end - self.offset))
            self._data, self._data_at = self._stretch.file.read_at(self.offset, most), self.offset
            return 0
        return at


def _may_be(data: bytes, at: int, nonce: bytes) -> bool:
    """Whether the head of a batch carries this nonce: then it is worth reading all of it."""
    return data[at + 16 : at + 16 + len(nonce)] == nonce


def envelopes_of(batch: Batch, segment: int, is_wanted: Wanted, bad: list[bytes]) -> Iterator[FoundEnvelope]:
    """Yield the wanted envelopes of a batch. Lines and records that do not check are added to `bad`."""
    reading: _Reading | None = None
    try:
        for record in read_records(batch.records):
            if record.kind is LogRecordKind.LINES:
                if reading is not None:
                    reading.lines.append((record, record.text))
                continue
            if reading is not None:
                yield from _envelope(batch, segment, reading, bad)
                reading = None
            if record.kind in ENVELOPES and is_wanted(LogPlace(batch.sequence, record.offset), record):
                reading = _begin(batch, segment, record, bad)
        if reading is not None:
            yield from _envelope(batch, segment, reading, bad)
    except Corrupt:
        bad.append(batch.records)


@attrs.frozen
class _Reading:
    """An envelope whose records are being read."""

    head: LogRecord
    content: ContentPlace | None
    lines: list[tuple[LogRecord, bytes]]


def read_lines(
    head: LogRecord, lines: Iterable[tuple[LogRecord, bytes]], bad: list[bytes]
) -> tuple[Message, list[Entry]] | None:
    """Read the lines of an envelope, each with its record; None: none of them checks. Those that do not are added to
    `bad`."""
    message: Message | None = None
    entries: list[Entry] = []
    for record, text in lines:
        for line in text.split(b"\n")[:-1]:
            parsed = parse_line(line, record.area) if record.area is not None else None
            if parsed is None or parsed[0].spool_id != head.spool_id:
                bad.append(line)
                continue
            message = parsed[0]
            entries.append(parsed[1])
    return (message, entries) if message is not None else None


def _begin(batch: Batch, segment: int, record: LogRecord, bad: list[bytes]) -> _Reading | None:
    if record.kind is LogRecordKind.REPLACEMENT:
        split = split_replacement(record.text)
        if split is None:
            bad.append(record.text)
            return None
        return _Reading(record, split[0], [(record, split[1])])
    if record.kind is LogRecordKind.FILE:
        return _Reading(record, None, [(record, record.text)])
    at = record.content_offset
    checksum = zlib.crc32(memoryview(batch.records)[at : at + record.content_size])
    return _Reading(record, ContentPlace(segment, batch.records_offset + at, checksum), [(record, record.text)])


def _envelope(batch: Batch, segment: int, reading: _Reading, bad: list[bytes]) -> Iterator[FoundEnvelope]:
    """The envelope of these lines, if one of them checks."""
    head = reading.head
    read = read_lines(head, reading.lines, bad)
    if read is not None:
        yield FoundEnvelope(
            LogPlace(batch.sequence, head.offset),
            segment,
            batch.records_offset + head.offset,
            batch.offset,
            head.detail,
            *read,
            head.is_marked,
            reading.content,
            sum(FRAME.size + len(record.text) for record, _ in reading.lines),
        )
