"""Each check of a segment that is read stands by itself."""

from __future__ import annotations

import pytest

from mailismus.journal.batch import BLOCK, SegmentHeader, encode_batch
from mailismus.journal.replay import FIRST_LOOK, look_at_file, read_batches, survey
from tests.fakes.disk import MemoryDisk

NONCE = b"0123456789abcdef"
HEADER = SegmentHeader(7, 40, 39, 3, 12, NONCE)


def batch(sequence: int) -> bytes:
    """A block."""
    return b"".join(encode_batch(NONCE, sequence, [b"record"], 6))


def disk_with(name: str, data: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/j")
    file = disk.create(f"/j/{name}")
    file.write_at(0, [data])
    file.close()
    return disk


def sequences(*blocks: bytes) -> list[int]:
    return [found.sequence for found in read_batches(HEADER.encode() + b"".join(blocks), HEADER)]


def test_files_of_other_names_are_left_alone() -> None:
    disk = disk_with("notes.txt", b"x" * 3 * BLOCK)
    assert [segment.path for segment in survey(disk, "/j").others] == []
    assert ("open", "/j/notes.txt") not in disk.acts


@pytest.mark.parametrize(("name", "is_unreadable"), [("00000007.mqj", True), ("spare.mqj", False)])
def test_only_a_file_with_a_number_was_begun_where_it_is_zeros_first(name: str, is_unreadable: bool) -> None:
    disk = disk_with(name, bytes(FIRST_LOOK) + b"x")
    assert look_at_file(f"/j/{name}", disk.open(f"/j/{name}")).is_unreadable is is_unreadable


def test_a_segment_whose_first_batch_checks_is_not_torn() -> None:
    disk = disk_with("00000007.mqj", HEADER.encode() + batch(40) + bytes(BLOCK))
    found = look_at_file("/j/00000007.mqj", disk.open("/j/00000007.mqj"))
    assert found.counts
    assert not found.is_torn


def test_a_segment_whose_first_batch_does_not_check_is_torn() -> None:
    disk = disk_with("00000007.mqj", HEADER.encode() + batch(40)[:40].ljust(BLOCK, b"\0"))
    found = look_at_file("/j/00000007.mqj", disk.open("/j/00000007.mqj"))
    assert not found.counts
    assert found.is_torn


def test_a_segment_that_begins_with_another_batch_than_its_header_tells_does_not_count() -> None:
    disk = disk_with("00000007.mqj", HEADER.encode() + batch(41) + bytes(BLOCK))
    assert not look_at_file("/j/00000007.mqj", disk.open("/j/00000007.mqj")).counts


def test_a_batch_that_is_not_the_next_one_does_not_count_in_its_place() -> None:
    assert sequences(batch(40), batch(41), batch(42)) == [40, 41, 42]
    assert sequences(batch(40), batch(42)) == [40]


def test_behind_damage_an_earlier_batch_does_not_count() -> None:
    assert sequences(batch(40), bytes(BLOCK), batch(42)) == [40, 42]
    assert sequences(batch(40), bytes(BLOCK), batch(39), batch(42)) == [40, 42]
