"""The numbered messages: exact size, valid lines, what was stuffed comes back."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.results.content import Block, Size, number_and_index, recipient, sender, skip_trace, unstuff

BLOCK = Block()
SIZES = st.integers(0, 300_000).filter(lambda size: size != 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), SIZES)
def test_content_has_exactly_the_size_and_survives_stuffing(number: int, size: int) -> None:
    pieces = list(BLOCK.pieces(number, size))
    plain, wire = b"".join(piece for piece, _ in pieces), b"".join(stuffed for _, stuffed in pieces)
    assert len(plain) == size
    assert unstuff(wire) == plain
    assert b"\r\n.\r\n" not in wire
    assert not wire.startswith(b".\r\n")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), SIZES)
def test_content_is_lines_of_seven_bits_that_do_not_fold_into_a_field_above(number: int, size: int) -> None:
    plain = b"".join(piece for piece, _ in BLOCK.pieces(number, size))
    assert plain == b"" or plain.endswith(b"\r\n")
    lines = plain.split(b"\r\n")[:-1]
    assert all(re.fullmatch(rb"[ -~]{0,998}", line) for line in lines)
    assert not plain.startswith(b" ")
    assert skip_trace(plain) == 0


def test_content_has_leading_dots_and_empty_lines() -> None:
    plain = b"".join(piece for piece, _ in BLOCK.pieces(1, 100_000))
    assert b"\r\n.\r\n" in plain
    assert b"\r\n..\r\n" in plain
    assert b"\r\n\r\n" in plain


def test_two_messages_of_a_size_differ() -> None:
    one, two = (b"".join(piece for piece, _ in BLOCK.pieces(number, 5000)) for number in (1, 2))
    assert one != two


def test_sizes_are_log_uniform_from_nothing_to_the_largest() -> None:
    rng, size = random.Random(3), Size(5_000_000)
    drawn = [size.draw(rng) for _ in range(20_000)]
    assert min(drawn) == 0
    assert 1 not in drawn
    assert max(drawn) <= 5_000_000
    assert 290_000 < sum(drawn) / len(drawn) < 360_000  # 5,000,000 / ln 5,000,000 = 324,000
    assert 0.45 < sum(value < 2236 for value in drawn) / len(drawn) < 0.55


def test_a_fixed_size_is_always_drawn() -> None:
    assert {Size(4096, fixed=True).draw(random.Random(seed)) for seed in range(9)} == {4096}


def test_an_address_tells_number_and_index() -> None:
    assert number_and_index(recipient(712, 49)) == (712, 49)
    assert number_and_index(sender(712)) == (712, 0)


def test_an_address_of_another_is_an_error() -> None:
    with pytest.raises(ValueError, match="not an address"):
        number_and_index(b"postmaster@example.net")


@pytest.mark.parametrize(
    ("top", "below"),
    [
        (b"", b"Subject: x\r\n\r\nReceived: no\r\n"),
        (b"Received: from a by b; c\r\n", b"\r\n"),
        (b"RECEIVED: from a\r\n\tby b;\r\n c\r\nReceived: from d\r\n", b"X-Number: 1\r\n"),
        (b"Received: from a\r\n", b""),
    ],
)
def test_received_fields_on_top_are_skipped_with_their_folded_lines(top: bytes, below: bytes) -> None:
    assert (top + below)[skip_trace(top + below) :] == below
