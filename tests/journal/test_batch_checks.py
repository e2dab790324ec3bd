"""Each check of a header and a batch stands by itself: bytes that pass all others are refused by it."""

from __future__ import annotations

import zlib
from functools import partial

import attrs
import pytest

from mailismus.errors import NewerFormat
from mailismus.journal.batch import (
    BATCH_HEAD_SIZE,
    BLOCK,
    SegmentHeader,
    decode_batch,
    decode_header,
    encode_batch,
    guess_header,
    header_format,
    highest_sequence,
    looks_torn,
)
from mailismus.journal.lenient import survey_leniently
from mailismus.journal.replay import refuse_newer_segment, survey
from tests.fakes.disk import MemoryDisk

NONCE = b"0123456789abcdef"
HEADER = SegmentHeader(7, 40, 39, 3, 12, NONCE)
HEADER_SIZE = 64


def with_crc(data: bytes) -> bytes:
    return data + zlib.crc32(data).to_bytes(4, "little")


def header_with(at: int, data: bytes) -> bytes:
    """The header with other bytes there, its CRC right."""
    head = bytearray(HEADER.encode()[:HEADER_SIZE])
    head[at : at + len(data)] = data
    return with_crc(bytes(head)).ljust(BLOCK, b"\0")


def batch_with(at: int, data: bytes, records: bytes = b"records") -> bytes:
    """A batch with other bytes in its head, its CRC right."""
    whole = b"".join(encode_batch(NONCE, 7, [records], len(records)))
    head = bytearray(whole[: BATCH_HEAD_SIZE - 4])
    head[at : at + len(data)] = data
    crc = zlib.crc32(records, zlib.crc32(bytes(head))).to_bytes(4, "little")
    return bytes(head) + crc + whole[BATCH_HEAD_SIZE:]


def test_the_bytes_made_here_are_right_but_for_what_is_changed() -> None:
    assert header_with(0, b"MQJ-SEGM") == HEADER.encode()
    assert batch_with(0, b"MQJB") == b"".join(encode_batch(NONCE, 7, [b"records"], 7))


@pytest.mark.parametrize(
    ("at", "data", "of_format"),
    [(0, b"MQJ-SEGN", 0), (8, b"\0\0\0\0", 0), (8, b"\3\0\0\0", 3), (8, b"\0\0\0\1", 1 << 24)],
    ids=["magic", "no format", "next format", "far format"],
)
def test_a_header_of_something_else_is_none(at: int, data: bytes, of_format: int) -> None:
    assert decode_header(header_with(at, data)) is None
    assert header_format(header_with(at, data)) == of_format


@pytest.mark.parametrize("of_format", [1, 2])
def test_a_header_of_either_format_is_read_as_it_was_written(of_format: int) -> None:
    header = attrs.evolve(HEADER, format=of_format)
    assert header.encode()[8] == of_format
    assert decode_header(header.encode()) == header
    assert header_format(header.encode()) == of_format


def test_a_format_number_that_does_not_check_is_no_newer_format() -> None:
    block = bytearray(HEADER.encode())
    block[8] = 3
    assert header_format(bytes(block)) == 0


def test_a_newer_segment_is_refused_by_all_that_read_a_journal() -> None:
    disk = MemoryDisk()
    disk.make_directory("/j")
    disk.create("/j/00000007.mqj").write_at(0, [header_with(8, b"\3\0\0\0"), bytes(BLOCK)])
    for read in (partial(survey, disk, "/j"), partial(survey_leniently, disk, "/j", lambda path, error: None)):
        with pytest.raises(NewerFormat, match=r"^/j/00000007\.mqj is of format 3, .* reads 1 and 2: start that one$"):
            read()
    refuse_newer_segment("/j/00000007.mqj", attrs.evolve(HEADER, format=2).encode())


def test_a_header_in_a_block_cut_short_is_none() -> None:
    for size in range(HEADER_SIZE + 4):
        assert decode_header(HEADER.encode()[:size]) is None


@pytest.mark.parametrize(("at", "data"), [(0, b"MQJC"), (16, b"f" * 16)], ids=["magic", "nonce"])
def test_a_batch_of_something_else_is_none(at: int, data: bytes) -> None:
    assert decode_batch(batch_with(at, data), 0, NONCE) is None


def test_a_batch_longer_than_its_segment_is_none() -> None:
    """Its CRC says what is there."""
    cut = batch_with(12, (8).to_bytes(4, "little"))[: BATCH_HEAD_SIZE + 7]
    assert decode_batch(cut, 0, NONCE) is None


def segment_of(*batches: bytes) -> bytes:
    return bytes(BLOCK) + b"".join(batches)


def numbered(sequence: int, records: bytes = b"records") -> bytes:
    return b"".join(encode_batch(NONCE, sequence, [records], len(records)))


def test_a_header_is_guessed_of_a_first_batch_that_checks_alone() -> None:
    guessed = guess_header(segment_of(numbered(7)), 3)
    assert guessed is not None
    assert (guessed.number, guessed.first_sequence, guessed.nonce) == (3, 7, NONCE)
    assert guess_header(segment_of(numbered(7).replace(b"records", b"recordz")), 3) is None
    assert guess_header(segment_of(b""), 3) is None
    assert guess_header(b"", 3) is None


def test_the_highest_sequence_is_that_of_a_batch_that_checks() -> None:
    damaged = numbered(9).replace(b"records", b"recordz")
    assert highest_sequence(segment_of(numbered(8), numbered(7), damaged)) == 8
    assert highest_sequence(segment_of(damaged)) == 0


def test_a_batch_looks_torn_by_its_first_bytes_and_its_nonce() -> None:
    whole = numbered(7)
    assert looks_torn(whole, 0, NONCE)
    assert looks_torn(b"x" + whole[1:30] + b"y" + whole[31:], 0, NONCE)
    assert not looks_torn(b"xy" + whole[2:], 0, NONCE)
    assert not looks_torn(whole, 0, b"0123" + b"x" * 12)
    assert not looks_torn(whole[: BATCH_HEAD_SIZE - 1], 0, NONCE)
