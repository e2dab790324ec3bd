"""Records of generator and sink are read back as they were written."""

from __future__ import annotations

from benchmarks.results.records import Acknowledged, Broken, Delivery, Unanswered, parse_broken, parse_deliveries, parse_sent


def test_the_generators_record_is_read_back() -> None:
    done = Acknowledged(12.5, 7, 3, 4096, "ab12", 12.25)
    doubt = Unanswered(13.25, 8, 2, 0, "cd34", "")
    refused = Unanswered(13.5, 9, 1, 10, "-", "452 4.3.1 no room")
    data = done.line() + doubt.line() + refused.line()
    assert parse_sent(data) == ([done], [doubt, refused])


def test_the_sinks_record_is_read_back_with_the_null_sender_too() -> None:
    one = Delivery(1.5, b"s0.n7@a.example", (b"r0.n7@b.example", b"r1.n7@b.example"), 0, "ab")
    two = Delivery(2.5, b"", (b"r0.n8@b.example",), 9, "cd", is_answered=False)
    broken = Broken(1.75, 3)
    data = one.line() + broken.line() + two.line()
    assert parse_deliveries(data) == [one, two]
    assert parse_broken(data) == [broken]
    assert list(one.entries()) == [(7, 0), (7, 1)]


def test_a_line_still_being_written_is_left_out() -> None:
    line = Acknowledged(12.5, 7, 3, 4096, "ab12").line()
    assert len(parse_sent(line + line[:-4])[0]) == 1
