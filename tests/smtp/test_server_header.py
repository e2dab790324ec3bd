"""What reception wants to know of a header, however it is cut; and the trace field's date."""

from __future__ import annotations

import email.utils
import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from mailismus.smtp.body import BodyScanner
from mailismus.smtp.header import MAX_HEADER, MAX_RECEIVED, HeaderScan
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


def test_an_endless_header_takes_bounded_memory() -> None:
    header = HeaderScan()
    for _ in range(100):
        header.add(b"X: " + b"x" * 4000 + b"\r\n")
    assert header.is_whole
    assert len(header._header) <= MAX_HEADER


@given(st.integers(0, 4_000_000_000))
def test_a_date_is_read_back_as_the_same_time(at: int) -> None:
    text = date_time(at).decode()
    assert email.utils.parsedate_to_datetime(text).timestamp() == at
    assert text.startswith(time.strftime("%a, ", time.gmtime(at)))
