"""What reception wants to know of a header, however it is cut; and the trace field's date."""

from __future__ import annotations

import email.utils
import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.smtp.body import BodyScanner
from mailismus.smtp.header import MAX_HEADER, MAX_RECEIVED, MOST_KEPT, HeaderScan
from mailismus.smtp.trace import date_time

FIELDS = [
    b"Received: x\r\n",
    b"received: y\r\n\tz\r\n",
    b"Message-ID: <1@x>\r\n",
    b"Subject: s\r\n",
    b"\r\n",
    b".\r\n",
    b" \r\n",
]


def scan(content: bytes, places: list[int]) -> HeaderScan:
    scanner, header = BodyScanner(), HeaderScan()
    wire = content + b"\r\n.\r\n"
    edges = [0, *sorted({place % (len(wire) + 1) for place in places}), len(wire)]
    for a, b in itertools.pairwise(edges):
        if a < b and scanner.end < 0:
            piece = scanner.scan(wire[a:b], 0)
            if piece:
                header.add(piece)
    return header


@given(st.lists(st.sampled_from(FIELDS), max_size=90), st.lists(st.integers(0, 3000), max_size=10))
def test_a_header_cut_anywhere_tells_what_it_tells_whole(fields: list[bytes], places: list[int]) -> None:
    content = b"".join(fields)
    whole, cut = scan(content, []), scan(content, places)
    assert cut.message_id() == whole.message_id()
    assert cut.is_looping() == whole.is_looping()
    header = (b"\r\n" + content).partition(b"\r\n\r\n")[0]
    if b"\r\n.\r\n" not in b"\r\n" + content:
        assert whole.is_looping() == (header.lower().count(b"\nreceived:") > MAX_RECEIVED)


LONG_FIELDS = [
    b"Received: x\r\n",
    b"RECEIVED:" + b"\r\n\treceived: y" * 100 + b"\r\n",
    b"X: " + b"x" * 1020 + b"\r\n",
    b"X: " + b"x" * MOST_KEPT + b"\r\n",
    b"X: " + b"received: " * 900 + b"\r\n",
    b"X:" + b"\r\n " * 1500 + b"\r\n",
    b"Message-ID:\r\n <1@x>\r\n",
]


@given(st.lists(st.sampled_from(LONG_FIELDS), min_size=1, max_size=7), st.lists(st.integers(0, 60_000), max_size=12))
def test_a_long_header_cut_anywhere_tells_what_stands_in_its_beginning(fields: list[bytes], places: list[int]) -> None:
    content = b"".join(fields)
    header = (b"\r\n" + content)[: MAX_HEADER + 2]
    found = scan(content + b"\r\nReceived: of the body\r\n", places)
    assert found._received + found._header.lower().count(b"\nreceived:") == header.lower().count(b"\nreceived:")
    assert found.message_id() == (b"<1@x>" if b"Message-ID:\r\n <1@x>\r\n" in header else b"")


def test_a_loop_is_seen_in_a_long_header_that_comes_in_pieces() -> None:
    for count in (MAX_RECEIVED, MAX_RECEIVED + 1):
        header = HeaderScan()
        for _ in range(count):
            header.add(b"Received: x\r\nX: " + b"x" * 500 + b"\r\n")
        assert header.is_looping() is (count > MAX_RECEIVED)


@pytest.mark.parametrize("before", [b"Message-ID: <2@x>\r\n\r\n", b"Received: x\r\n" * 60, b"X: y", b"\r\n"])
def test_a_scan_that_is_used_again_knows_nothing_of_the_header_before(before: bytes) -> None:
    header = HeaderScan()
    header.add(before)
    header.begin()
    assert (header.is_whole, header.is_looping(), header.message_id()) == (False, False, b"")
    header.add(b"Message-ID: <1@x>\r\n\r\nbody\r\n")
    assert (header.is_whole, header.is_looping(), header.message_id()) == (True, False, b"<1@x>")


@pytest.mark.parametrize("piece", [b"X: " + b"x" * 4000 + b"\r\n", b"x" * 4000, b" \r\n" * 1000, b"x", b"\r\n "])
def test_an_endless_header_takes_little_memory(piece: bytes) -> None:
    header = HeaderScan()
    while not header.is_whole:
        header.add(piece)
        assert header.is_whole or len(header._header) <= MOST_KEPT
    assert len(header._header) <= MOST_KEPT + len(piece)


@given(st.integers(0, 4_000_000_000))
def test_a_date_is_read_back_as_the_same_time(at: int) -> None:
    text = date_time(at).decode()
    assert email.utils.parsedate_to_datetime(text).timestamp() == at
    assert text.startswith(time.strftime("%a, ", time.gmtime(at)))
