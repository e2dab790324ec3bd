"""Batches and headers are whole or nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailismus.journal.batch import (
    BLOCK,
    NONCE_SIZE,
    SegmentHeader,
    decode_batch,
    decode_header,
    encode_batch,
    padded_size,
)

NONCE = b"0123456789abcdef"
U64 = st.integers(0, (1 << 64) - 1)
HEADERS = st.builds(
    SegmentHeader, U64, U64, U64, st.integers(0, (1 << 32) - 1), U64, st.binary(min_size=NONCE_SIZE, max_size=NONCE_SIZE)
)


def batch_bytes(records: list[bytes], sequence: int = 7, nonce: bytes = NONCE) -> bytes:
    return b"".join(encode_batch(nonce, sequence, records, sum(map(len, records))))


@given(HEADERS)
def test_a_header_is_read_as_it_was_written(header: SegmentHeader) -> None:
    block = header.encode()
    assert len(block) == BLOCK
    assert decode_header(block) == header


@given(HEADERS, st.integers(0, 66), st.integers(1, 255))
def test_a_changed_byte_of_a_header_is_seen(header: SegmentHeader, at: int, change: int) -> None:
    block = bytearray(header.encode())
    block[at] ^= change
    assert decode_header(bytes(block)) is None


@given(st.lists(st.binary(max_size=5000), max_size=5), U64, st.integers(0, 3))
def test_a_batch_is_read_as_it_was_written(records: list[bytes], sequence: int, blocks_before: int) -> None:
    data = bytes(blocks_before * BLOCK) + batch_bytes(records, sequence)
    batch = decode_batch(data, blocks_before * BLOCK, NONCE)
    assert batch is not None
    assert (batch.sequence, batch.records) == (sequence, b"".join(records))
    assert batch.end == len(data)
    assert len(data) % BLOCK == 0
    assert padded_size(len(b"".join(records))) == len(data) - blocks_before * BLOCK


def test_every_changed_byte_of_a_batch_is_seen() -> None:
    data = batch_bytes([b"some records", b"more of them"])
    used = data.rstrip(b"\0")
    for at in range(len(used)):
        changed = bytearray(data)
        changed[at] ^= 1
        assert decode_batch(bytes(changed), 0, NONCE) is None, at


@given(st.binary(min_size=1, max_size=9000), st.data())
def test_a_torn_batch_is_none(record: bytes, data: st.DataObject) -> None:
    whole = batch_bytes([record + b"\xff"])
    cut = data.draw(st.integers(0, len(whole.rstrip(b"\0")) - 1))
    assert decode_batch(whole[:cut], 0, NONCE) is None
    assert decode_batch(whole[:cut].ljust(len(whole), b"\0"), 0, NONCE) is None


def test_a_batch_of_another_use_of_the_file_is_none() -> None:
    assert decode_batch(batch_bytes([b"x"], nonce=b"f" * NONCE_SIZE), 0, NONCE) is None


def test_a_batch_hidden_in_a_mail_is_none_without_the_nonce() -> None:
    forged = batch_bytes([b"forged"], nonce=bytes(NONCE_SIZE))
    carrier = batch_bytes([b"x" * (BLOCK - 36) + forged])
    assert decode_batch(carrier, BLOCK, NONCE) is None
