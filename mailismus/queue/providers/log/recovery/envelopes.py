"""Live envelopes: read from a segment, batch by batch. Blocks."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

import attrs

from mailismus.errors import Corrupt
from mailismus.journal.replay import FoundSegment, read_batches
from mailismus.queue.files.recipient_line import parse_line
from mailismus.queue.interface import Entry, Message
from mailismus.queue.providers.log.format.record import (
    ENVELOPES,
    ContentPlace,
    Place,
    Record,
    RecordKind,
    read_records,
    split_replacement,
)
from mailismus.queue.providers.log.recovery.replay import Work


@attrs.frozen
class FoundEnvelope:
    """One envelope in a segment. `entries`: all of its lines that check; `content`: None: a message file."""

    place: Place
    segment: int
    offset: int
    """Of its record in the segment's file."""
    is_marked: bool
    message: Message
    entries: list[Entry]
    content: ContentPlace | None


def read_envelopes(
    segment: FoundSegment, works: Mapping[Place, Work], first: Place, behind: int, bad: list[bytes]
) -> Iterator[FoundEnvelope]:
    """Yield the envelopes of a segment that are not marked and not before `first`, and all in `works`. A batch up to the
    sequence number `behind` was found in a segment before: a start has written it again, and its header is lost. Lines that
    do not check are added to `bad`. Raises OSError."""
    header = segment.header
    assert header is not None
    for batch in read_batches(segment.file.read_at(0, segment.size_bytes), header):
        if batch.sequence > segment.limit:
            return
        if batch.sequence <= behind:
            continue
        behind = batch.sequence
        reading: tuple[Record, ContentPlace | None] | None = None
        lines: list[tuple[Record, bytes]] = []
        try:
            for record in read_records(batch.records):
                if record.kind is RecordKind.LINES:
                    if reading is not None:
                        lines.append((record, record.text))
                    continue
                if reading is not None:
                    yield from _envelope(segment, batch.sequence, batch.records_offset, reading, lines, bad)
                    reading = None
                if record.kind not in ENVELOPES:
                    continue
                place = Place(batch.sequence, record.offset)
                if place not in works and (record.is_marked or place < first):
                    continue
                content, text = None, record.text
                if record.kind is RecordKind.REPLACEMENT:
                    split = split_replacement(text)
                    if split is None:
                        bad.append(text)
                        continue
                    content, text = split
                elif record.kind is RecordKind.MESSAGE:
                    at = record.content_offset
                    data = memoryview(batch.records)[at : at + record.content_size]
                    content = ContentPlace(header.number, batch.records_offset + at, zlib.crc32(data))
                reading, lines = (record, content), [(record, text)]
            if reading is not None:
                yield from _envelope(segment, batch.sequence, batch.records_offset, reading, lines, bad)
        except Corrupt:
            bad.append(batch.records)


def _envelope(
    segment: FoundSegment,
    sequence: int,
    records_offset: int,
    reading: tuple[Record, ContentPlace | None],
    lines: list[tuple[Record, bytes]],
    bad: list[bytes],
) -> Iterator[FoundEnvelope]:
    """The envelope of these lines, if one of them checks."""
    head, content = reading
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
    if message is not None:
        assert segment.header is not None
        place = Place(sequence, head.offset)
        offset = records_offset + head.offset
        yield FoundEnvelope(place, segment.header.number, offset, head.is_marked, message, entries, content)
