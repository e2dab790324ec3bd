"""Dump: prints a file of a log-structured queue readably.

A segment: its header, then each batch with its records: what is marked, recipient lines as they are, contents by size and
offset in the file (for the bytes: `tail -c +OFFSET | head -c SIZE`). An envelope is named by its place, `SEQUENCE+OFFSET`.
The positions: both blocks. All else: `queue.files.dump`.
"""

from __future__ import annotations

from typing import TextIO

from mailismus.disk.interface import IDisk, close_read
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Corrupt
from mailismus.journal.batch import Batch
from mailismus.queue.files.dump import dump_file, dump_lines
from mailismus.queue.providers.log.format.positions import BLOCK, NAME, Positions, decode_positions
from mailismus.queue.providers.log.format.record import (
    ENVELOPES,
    GARBAGE,
    WORKING,
    LogPlace,
    LogRecord,
    LogRecordKind,
    parse_delivery,
    parse_places,
    read_records,
    shortest_s,
    split_replacement,
)
from mailismus.queue.providers.log.index.piece import area_of

_PLACES = frozenset((LogRecordKind.MOVED, LogRecordKind.START, LogRecordKind.FINISH))


def dump(path: str, out: TextIO, disk: IDisk | None = None) -> None:
    """Print the file. Raises `StartError` (65) where it is no file of a queue, `Corrupt` where it does not check,
    `NewerFormat`, `OSError`."""
    names = "segments of the log (.mqj), positions"
    dump_file(path, out, disk or PosixDisk(Access.READ_ONLY), _dump_records, {NAME: _dump_positions}, names)


def _dump_records(batch: Batch, out: TextIO) -> None:
    for record in read_records(batch.records):
        kind = record.kind
        out.write(f"  {kind.name.lower()}{_rest_of(record, batch)}\n")
        if kind in ENVELOPES or kind is LogRecordKind.LINES:
            split = split_replacement(record.text) if kind is LogRecordKind.REPLACEMENT else None
            dump_lines(split[1] if split is not None else record.text, record.area, out)
        elif kind is LogRecordKind.EPOCH:
            dump_lines(record.text, None, out)


def _rest_of(record: LogRecord, batch: Batch) -> str:
    """What stands in the line of a record behind its kind."""
    if record.kind in _PLACES:
        places = parse_places(record.text)
        return " DOES NOT CHECK" if places is None else "".join(f" {_place(place)}" for place in places)
    if record.kind is LogRecordKind.DELIVERY:
        delivery = parse_delivery(record.text)
        if delivery is None:
            return " DOES NOT CHECK"
        return f" {record.spool_id:016X} of {_place(delivery[0])}: recipients {' '.join(map(str, delivery[1]))}"
    if record.area is None:
        return ""
    if record.kind is LogRecordKind.LINES:
        return f" {record.spool_id:016X} {record.area.value}"
    place = LogPlace(batch.sequence, record.offset)
    mark = {GARBAGE: "garbage", WORKING: "worked on"}.get(record.mark, "not marked")
    facts = f"{mark}{_delay(record.detail)}{_content(record, batch)}"
    return f" {_place(place)} {record.spool_id:016X} {record.area.value}, {facts}"


def _delay(interval: int) -> str:
    return f", due {shortest_s(interval):.0f} s later or more" if interval else ""


def _content(record: LogRecord, batch: Batch) -> str:
    if record.kind is LogRecordKind.MESSAGE:
        return f", content of {record.content_size} bytes at {batch.records_offset + record.content_offset}"
    if record.kind is LogRecordKind.FILE:
        return ", content in its message file"
    split = split_replacement(record.text)
    if split is None:
        return ", content DOES NOT CHECK"
    return f", content in segment {split[0].segment} at {split[0].offset}, CRC {split[0].checksum:08x}"


def _place(place: LogPlace) -> str:
    return f"{place.sequence}+{place.offset}"


def _dump_positions(path: str, out: TextIO, disk: IDisk) -> None:
    file = disk.open(path)
    try:
        data = file.read_at(0, 2 * BLOCK)
    finally:
        close_read(file)
    counts = decode_positions(data)
    if counts is None:
        raise Corrupt(path, 0, "neither block of the positions checks")
    for number, offset in enumerate((0, BLOCK), 1):
        found = decode_positions(data[offset : offset + BLOCK])
        if found is None:
            out.write(f"block {number}: DOES NOT CHECK\n")
            continue
        same = number == 2 and found == decode_positions(data[:BLOCK])
        out.write(f"block {number}: {'the same' if same else _positions_text(found)}\n")


def _positions_text(found: Positions) -> str:
    lines = [f"positions {found.number}: the working suffix begins at batch {found.suffix}"]
    for runner, place in sorted(found.runners.items()):
        if runner == 0:
            lines.append(f"  nothing that waits lies before {_place(place)}")
        else:
            delay = _delay(runner & 0xFF) or ", due at once"
            lines.append(f"  runner of {area_of(runner).value}{delay}: {_place(place)}")
    if found.ignored:
        lines.append(f"  segments to be removed: {' '.join(map(str, found.ignored))}")
    return "\n".join(lines)
