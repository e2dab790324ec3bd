"""Skimming reads what a look needs, and shows nothing that was not written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailismus.journal.batch import BLOCK, SegmentHeader, encode_batch
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.log.format.record import (
    ContentPlace,
    LogPlace,
    LogRecord,
    file_record,
    finish_record,
    lines_record,
    message_head,
    replacement_record,
)
from mailismus.queue.providers.log.read.envelopes import BatchReader, SeenEnvelope, Stretch, envelopes_of
from mailismus.queue.providers.log.read.live_count import count_envelopes
from mailismus.queue.providers.log.read.seen import look_at, seen_batches
from mailismus.queue.providers.log.read.skim import JUMP_BYTES, SkimReader
from mailismus.queue.sums import new_sums
from tests.fakes.disk import MemoryDisk, MemoryFile

NONCE = b"n" * 16
HEADER = SegmentHeader(1, 1, 0, 1, 0, NONCE)


def _lines(spool_id: int, numbers: range, recipients: int, size: int, area: Area) -> bytes:
    message = Message(SpoolId(spool_id), b"a@b.example", b"192.0.2.1", False, 1_700_000_000.0, size, recipients, [])
    entries = [Entry(at, b"r%d@d.example" % at, area, 1_700_000_900.0) for at in numbers]
    return format_lines(message, entries)


def _record(spool_id: int, kind: str, recipients: int, size: int) -> bytes:
    several = recipients + (kind == "L")
    lines = _lines(spool_id, range(1, recipients + 1), several, size, Area.DEFERRED)
    if kind == "M":
        return message_head(Area.DEFERRED, SpoolId(spool_id), lines, size) + b"c" * size
    if kind == "R":
        return replacement_record(Area.DEFERRED, SpoolId(spool_id), lines, ContentPlace(1, 4132, 77), 9)
    if kind == "L":
        further = lines_record(
            Area.BOUNCES, SpoolId(spool_id), _lines(spool_id, range(several, several + 1), several, size, Area.BOUNCES)
        )
        return file_record(Area.DEFERRED, SpoolId(spool_id), lines) + further
    if kind == "X":
        return finish_record([LogPlace(3, 14)])
    return file_record(Area.DEFERRED, SpoolId(spool_id), lines)


_ENVELOPES = st.tuples(st.sampled_from("MRFLX"), st.integers(1, 3), st.sampled_from((0, 50, 5000, JUMP_BYTES + 7)))
_BATCHES = st.lists(st.lists(_ENVELOPES, min_size=1, max_size=4), min_size=1, max_size=5)


def stretch_of(batches: Sequence[Sequence[tuple[str, int, int]]]) -> tuple[Stretch, MemoryDisk]:
    """A segment with batches of such envelopes, numbered from 1."""
    disk = MemoryDisk()
    disk.directories.add("/q")
    file = disk.create("/q/segment")
    offset, spool_id = BLOCK, 0
    for sequence, envelopes in enumerate(batches, 1):
        records = []
        for kind, recipients, size in envelopes:
            spool_id += 1
            records.append(_record(spool_id, kind, recipients, size))
        data = b"".join(encode_batch(NONCE, sequence, records, sum(map(len, records)), has_marks=True))
        file.write_at(offset, [data])
        offset += len(data)
    return Stretch(file, HEADER, BLOCK, offset, 0, len(batches)), disk


def _is_live(_: LogPlace, record: LogRecord) -> bool:
    return not record.is_marked


def _facts(one: SeenEnvelope) -> tuple[object, ...]:
    return one.place, one.offset, one.batch, one.interval, one.message, tuple(map(str, one.entries))


def seen_whole(stretch: Stretch) -> Iterator[SeenEnvelope]:
    reader = BatchReader(stretch)
    while (batch := reader.next()) is not None:
        yield from envelopes_of(batch, 1, _is_live, [])


def seen_by_skimming(stretch: Stretch) -> Iterator[SeenEnvelope]:
    for seen in seen_batches(SkimReader(stretch), 1, _is_live, []):
        yield from seen


def whole(stretch: Stretch) -> list[tuple[object, ...]]:
    return [_facts(one) for one in seen_whole(stretch)]


def skimmed(stretch: Stretch) -> list[tuple[object, ...]]:
    return [_facts(one) for one in seen_by_skimming(stretch)]


def entries_of(seen: Iterable[SeenEnvelope]) -> set[str]:
    """The message and all facts of each entry."""
    return {f"{attrs.evolve(one.message, entries=[])} {entry}" for one in seen for entry in one.entries}


@given(_BATCHES)
@settings(deadline=None)
def test_skimming_finds_what_a_whole_reading_finds(batches: list[list[tuple[str, int, int]]]) -> None:
    stretch, _ = stretch_of(batches)
    assert skimmed(stretch) == whole(stretch)


@given(_BATCHES, st.integers(1, 5))
@settings(deadline=None)
def test_slices_together_are_the_whole(batches: list[list[tuple[str, int, int]]], most: int) -> None:
    stretch, _ = stretch_of(batches)
    found: list[tuple[object, ...]] = []
    begin: int | None = BLOCK
    while begin is not None:
        one = look_at(attrs.evolve(stretch, begin=begin), 1, most, is_last_piece=True)
        assert one.is_whole
        found += map(_facts, one.seen)
        begin = one.end
    assert found == whole(stretch)


@given(_BATCHES)
@settings(deadline=None)
def test_counts_are_those_of_the_entries(batches: list[list[tuple[str, int, int]]]) -> None:
    stretch, _ = stretch_of(batches)
    sums, wanted = new_sums(), new_sums()
    count_envelopes(stretch, (), sums)
    for seen in seen_batches(SkimReader(stretch), 1, _is_live, []):
        for one in seen:
            for entry in one.entries:
                wanted[entry.area].add_entry(one.message)
    assert {area: of.count() for area, of in sums.items()} == {area: of.count() for area, of in wanted.items()}


_MIXED = [[("M", 1, 300), ("R", 2, 0)], [("L", 2, 0), ("X", 1, 0), ("M", 3, 5000)], [("F", 1, 0)]]


@pytest.mark.parametrize("part", range(8))
def test_damage_shows_nothing_that_was_not_written(part: int) -> None:
    """Each bit of heads and lines is turned over: what a whole reading still finds is found, and nothing else but what was
    there before."""
    stretch, disk = stretch_of(_MIXED)
    written, data = entries_of(seen_whole(stretch)), bytearray(disk.names["/q/segment"].data)
    places = [at for at in range(BLOCK, stretch.end) if data[at] not in b"c\0"]
    for at in places[part::8]:
        for bit in (1, 16, 64):
            disk.names["/q/segment"].data[at] = data[at] ^ bit
            found = entries_of(seen_by_skimming(stretch))
            assert found <= written
            assert entries_of(seen_whole(stretch)) <= found
        disk.names["/q/segment"].data[at] = data[at]


def test_a_line_that_does_not_check_is_no_whole_look() -> None:
    stretch, disk = stretch_of(_MIXED)
    data = disk.names["/q/segment"].data
    at = data.index(b"r2@d.example", 2 * BLOCK)
    data[at] ^= 1
    assert not look_at(stretch, 1, 1000, is_last_piece=True).is_whole


def test_a_batch_that_is_missing_at_the_end_is_no_whole_look() -> None:
    stretch, _ = stretch_of(_MIXED)
    exact = attrs.evolve(stretch, is_exact=True)
    assert look_at(exact, 1, 1000, is_last_piece=True).is_whole
    assert not look_at(attrs.evolve(exact, last=9), 1, 1000, is_last_piece=True).is_whole


def test_contents_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 4 * JUMP_BYTES
    stretch, _ = stretch_of([[("M", 1, size)] * 4] * 5)
    read: list[int] = []
    read_at = MemoryFile.read_at

    def counted(file: MemoryFile, offset: int, size_bytes: int) -> bytes:
        data = read_at(file, offset, size_bytes)
        read.append(len(data))
        return data

    monkeypatch.setattr(MemoryFile, "read_at", counted)
    assert len(skimmed(stretch)) == 20
    assert sum(read) <= 20 * 3 * BLOCK < 20 * size // 8
