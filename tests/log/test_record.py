"""Records of the log and its positions as bytes: what is written is read, and damaged bytes never pass."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.errors import Corrupt
from mailismus.journal.batch import decode_batch, encode_batch
from mailismus.journal.frame import MARK_AT
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.format import record as r
from mailismus.queue.providers.log.format.positions import BLOCK, MOST_IGNORED, MOST_RUNNERS, Positions, decode_positions

NONCE = b"n" * 16
LINES = b" A some line\n A another\n"
ID = SpoolId(7)
PLACES = st.builds(r.LogPlace, st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
NUMBERS = st.lists(st.integers(1, 10**9 - 1), max_size=20)


def one(data: bytes) -> r.LogRecord:
    (found,) = r.read_records(data)
    return found


@given(st.sampled_from(Area), st.integers(0, 2**63 - 1), st.binary(max_size=100), st.binary(max_size=100))
def test_an_envelope_with_its_content(area: Area, number: int, lines: bytes, content: bytes) -> None:
    data = r.message_head(area, SpoolId(number), lines, len(content)) + content
    found = one(data)
    assert (found.kind, found.area, found.spool_id, found.text) == (r.LogRecordKind.MESSAGE, area, number, lines)
    assert data[found.content_offset : found.content_offset + found.content_size] == content
    assert not found.is_marked


@given(st.lists(PLACES, max_size=20))
def test_places(places: list[r.LogPlace]) -> None:
    assert r.parse_places(one(r.start_record(places)).text) == places
    assert r.parse_places(one(r.finish_record(places)).text) == places


@given(PLACES)
def test_a_finish_record_of_one_envelope_is_that_of_several(place: r.LogPlace) -> None:
    assert r.finish_one(*place) == r.finish_record([place])


@given(PLACES, NUMBERS)
def test_a_delivery(place: r.LogPlace, numbers: list[int]) -> None:
    found = one(r.delivery_record(ID, place, numbers))
    assert found.spool_id == ID
    assert r.parse_delivery(found.text) == (place, tuple(numbers))


@given(st.integers(0, 2**49), st.integers(0, 2**39), st.integers(0, 2**32 - 1), st.binary(max_size=50))
def test_a_replacement_says_where_its_content_lies(segment: int, offset: int, crc: int, lines: bytes) -> None:
    found = one(r.replacement_record(Area.DEFERRED, ID, lines, r.ContentPlace(segment, offset, crc), 9))
    assert found.detail == 9
    assert r.split_replacement(found.text) == (r.ContentPlace(segment, offset, crc), lines)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"content 1 2\n",
        b"content 1 2 0000000g\n",
        b"content 1 2 000000\n",
        b"content 1 2 00000000 3\n",
        b"content 1 +2 00000000\n",
        b"content x 2 00000000\n",
        b"content 1 99999999999999999 00000000\n",
        b"place 1 2 00000000\n",
    ],
)
def test_a_replacement_without_the_place_of_its_content(text: bytes) -> None:
    assert r.split_replacement(text) is None


@given(st.binary(max_size=60))
def test_other_bytes_are_no_places(text: bytes) -> None:
    found = r.parse_places(text)
    assert (found is not None) == (len(text) % 12 == 0)
    delivery = r.parse_delivery(text)
    assert (delivery is not None) == (len(text) >= 12 and len(text) % 4 == 0)


@given(st.integers(0, 2**32 - 1))
def test_an_epoch(epoch: int) -> None:
    assert r.parse_epoch(one(r.epoch_record(epoch)).text) == epoch


@pytest.mark.parametrize("text", [b"", b"epoch", b"epoch x", b"epoch 99999999999", b"epoch 1 2"])
def test_no_epoch(text: bytes) -> None:
    assert r.parse_epoch(text) == 0


def test_records_whose_lengths_do_not_fit() -> None:
    whole = r.epoch_record(1)
    for cut in range(1, len(whole)):
        with pytest.raises(Corrupt):
            list(r.read_records(whole[:cut]))
    with pytest.raises(Corrupt):
        list(r.read_records(b"?" + whole[1:]))


@given(st.floats(0, 1e9))
def test_an_interval_begins_below_its_delays(delay_s: float) -> None:
    interval = r.interval_of(delay_s)
    assert 0 <= interval <= r.MOST_DETAIL
    assert r.shortest_s(interval) <= max(delay_s, 1)


def batch_of(*records: bytes) -> bytes:
    return b"".join(encode_batch(NONCE, 5, records, sum(map(len, records)), has_marks=True))


def test_marks_are_outside_the_crc_and_nothing_else_is() -> None:
    records = (
        r.message_head(Area.INCOMING, ID, LINES, 9) + b"MESSAGE\r\n",
        r.lines_record(Area.BOUNCES, ID, LINES),
        r.finish_one(3, 4),
    )
    data = batch_of(*records)
    batch = decode_batch(data, 0, NONCE)
    assert batch is not None
    starts = [batch.records_offset + record.offset for record in r.read_records(batch.records)]
    for at in range(batch.records_offset + len(batch.records)):
        changed = bytearray(data)
        changed[at] ^= 0x78
        found = decode_batch(bytes(changed), 0, NONCE)
        if at - MARK_AT in starts:
            assert found is not None
            marked = [record.is_marked for record in r.read_records(found.records)]
            assert marked == [start == at - MARK_AT for start in starts]
        else:
            assert found is None, at


@given(st.binary(max_size=300))
def test_any_bytes_are_looked_at(records: bytes) -> None:
    batch = decode_batch(batch_of(records), 0, NONCE)
    assert batch is None or batch.records == records


RUNNERS = st.dictionaries(st.integers(0, 2**32 - 1), PLACES, max_size=MOST_RUNNERS)


@given(st.integers(0, 2**63), st.integers(0, 2**63), RUNNERS)
def test_positions(number: int, suffix: int, runners: dict[int, r.LogPlace]) -> None:
    positions = Positions(number, suffix, runners, tuple(list(runners)[:MOST_IGNORED]))
    block = positions.encode()
    assert len(block) == BLOCK
    assert decode_positions(block) == positions
    assert decode_positions(bytes(BLOCK) + block) == positions
    newer = Positions(number + 1, suffix, {})
    assert decode_positions(newer.encode() + block) == newer
    assert decode_positions(block + newer.encode()) == newer


def test_damaged_positions() -> None:
    block = Positions(3, 9, {0: r.LogPlace(1, 2), 7: r.LogPlace(3, 4)}, (5,)).encode()
    used = len(block.rstrip(b"\0"))
    for at in range(used):
        changed = bytearray(block)
        changed[at] ^= 1
        assert decode_positions(bytes(changed)) is None, at
    assert decode_positions(b"") is None
    assert decode_positions(bytes(2 * BLOCK)) is None


def test_too_many_runners() -> None:
    with pytest.raises(ValueError, match="runners"):
        Positions(1, 1, {number: r.LogPlace(1, 1) for number in range(MOST_RUNNERS + 1)}).encode()


def test_too_many_ignored_segments() -> None:
    with pytest.raises(ValueError, match="segments"):
        Positions(1, 1, {}, tuple(range(MOST_IGNORED + 1))).encode()


@pytest.mark.parametrize(("at", "size"), [(0, 8), (8, 4)], ids=["another file", "another format"])
def test_what_checks_and_is_no_positions(at: int, size: int) -> None:
    data = bytearray(Positions(3, 9, {}).encode().rstrip(b"\0")[:-4].ljust(36, b"\0"))
    data[at : at + size] = b"\x07" * size
    assert decode_positions((bytes(data) + zlib.crc32(data).to_bytes(4, "little")).ljust(BLOCK, b"\0")) is None


def test_records_of_other_kinds_are_left_out() -> None:
    records = r.finish_one(3, 4) + r.epoch_record(7) + r.finish_one(5, 6)
    assert [record.kind for record in r.read_records(records, b"E")] == [r.LogRecordKind.EPOCH]


def test_a_batch_is_written_again_with_its_marks() -> None:
    record = r.message_head(Area.INCOMING, ID, LINES, 9) + b"MESSAGE\r\n"
    marked = record[:MARK_AT] + r.GARBAGE + record[MARK_AT + 1 :]
    data = b"".join(encode_batch(NONCE, 5, [marked, record], 2 * len(record), has_marks=True, is_marked=True))
    batch = decode_batch(data, 0, NONCE)
    assert batch is not None
    assert batch.records == marked + record
