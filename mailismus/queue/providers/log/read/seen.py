"""Envelopes that are looked at, and not loaded: their lines, without their contents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.log.format.record import ENVELOPES, LogPlace, LogRecord, LogRecordKind, split_replacement
from mailismus.queue.providers.log.read.damage import damages_of, has_doubtful_end
from mailismus.queue.providers.log.read.envelopes import SeenEnvelope, Stretch, Wanted, read_lines
from mailismus.queue.providers.log.read.skim import SkimmedBatch, SkimReader


@attrs.frozen
class Grouped:
    """The records of one envelope. `lines`: each with its record."""

    head: LogRecord
    lines: list[tuple[LogRecord, bytes]]


def grouped(batch: SkimmedBatch, is_wanted: Wanted) -> Iterator[Grouped]:
    """Yield the wanted envelopes of a batch, each with the records of its lines."""
    group: Grouped | None = None
    for record in batch.records:
        if record.kind is LogRecordKind.LINES:
            if group is not None:
                group.lines.append((record, record.text))
            continue
        if group is not None:
            yield group
        group = None
        if record.kind in ENVELOPES and is_wanted(LogPlace(batch.sequence, record.offset), record):
            group = Grouped(record, [(record, _lines_of(record))])
    if group is not None:
        yield group


def _lines_of(record: LogRecord) -> bytes:
    """The lines of an envelope's record. Where they do not check: text that does not, either."""
    if record.kind is not LogRecordKind.REPLACEMENT:
        return record.text
    split = split_replacement(record.text)
    return split[1] if split is not None else record.text


def seen_in(batch: SkimmedBatch, segment: int, is_wanted: Wanted, bad: list[bytes]) -> Iterator[SeenEnvelope]:
    """Yield the wanted envelopes of a batch. Lines that do not check are added to `bad`."""
    for group in grouped(batch, is_wanted):
        head = group.head
        read = read_lines(head, group.lines, bad)
        if read is not None:
            place, offset = LogPlace(batch.sequence, head.offset), batch.records_offset + head.offset
            yield SeenEnvelope(place, segment, offset, batch.offset, head.detail, *read)


def seen_batches(reader: SkimReader, segment: int, is_wanted: Wanted, bad: list[bytes]) -> Iterator[Sequence[SeenEnvelope]]:
    """Yield the wanted envelopes of each batch. A batch with lines that do not check is read whole, and is damage if its
    CRC says so; else they are added to `bad`. Raises OSError."""
    while (batch := reader.next()) is not None:
        not_checked: list[bytes] = []
        seen = list(seen_in(batch, segment, is_wanted, not_checked))
        if not_checked and not batch.is_whole:
            reader.again(batch)
            continue
        bad += not_checked if not batch.bad else [batch.bad]
        yield seen


@attrs.frozen
class SeenSlice:
    """What was seen of a piece. `end`: offset of the batch where the look ended; None: with the piece. `is_whole`: all that
    was looked at checks."""

    seen: list[SeenEnvelope]
    end: int | None
    is_whole: bool


def look_at(
    stretch: Stretch, segment: int, most_entries: int, *, is_last_piece: bool, only: SpoolId | None = None
) -> SeenSlice:
    """Look at the unmarked envelopes of a stretch, with about so many entries. `is_last_piece`: the segment ends with it;
    `only`: those of this message. Blocks. Raises OSError."""

    def is_wanted(_: LogPlace, record: LogRecord) -> bool:
        return not record.is_marked and only in (None, record.spool_id)

    reader = SkimReader(stretch, only)
    seen: list[SeenEnvelope] = []
    bad: list[bytes] = []
    entries = 0
    for found in seen_batches(reader, segment, is_wanted, bad):
        seen += found
        entries += sum(len(one.entries) for one in found)
        if entries >= most_entries and reader.whole.offset < stretch.end:
            return SeenSlice(seen, reader.whole.offset, is_whole=not (bad or reader.whole.skipped))
    if bad or damages_of(reader.whole, stretch, is_last_piece=is_last_piece):
        return SeenSlice(seen, None, is_whole=False)
    return SeenSlice(seen, None, is_whole=not (is_last_piece and has_doubtful_end(reader.whole, stretch)))
