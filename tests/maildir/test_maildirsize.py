"""The file `maildirsize`: what is read from it, and what is written."""

from __future__ import annotations

import pytest

from mailismus.maildir.maildirsize import Amount, MaildirSize, folders_of, format_change, format_whole, parse, size_in


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"1000S,10C\n500 5\n", MaildirSize(Amount(1000, 10), Amount(500, 5))),
        (b"1000S\n500 5\n100 1\n-200 -2\n", MaildirSize(Amount(1000), Amount(400, 4), 2)),
        (b"10C\n         500            5\n", MaildirSize(Amount(0, 10), Amount(500, 5))),
        (b"10C,1000S\n0 0\n", MaildirSize(Amount(1000, 10), Amount())),
        (b"1000S\n", MaildirSize(Amount(1000), None)),
        (b"1000S", MaildirSize(Amount(1000), None)),
        (b"1000S\n500 5\n10", MaildirSize(Amount(1000), None)),
        (b"1000S\n500 five\n", MaildirSize(Amount(1000), None)),
        (b"1000S\n500 5\n\n", MaildirSize(Amount(1000), None)),
        (b"1000S\n-1 0\n", MaildirSize(Amount(1000), None)),
        (b"1000S\n500 5\n\x00\x00\n", MaildirSize(Amount(1000), None)),
        (b"", None),
        (b"\n500 5\n", None),
        (b"0S,0C\n500 5\n", None),
        (b"1000X\n500 5\n", None),
        (b"1000S,nonsense\n500 5\n", None),
        (b"-1000S\n500 5\n", None),
    ],
)
def test_what_the_file_says(data: bytes, found: MaildirSize | None) -> None:
    assert parse(data) == found


@pytest.mark.parametrize("limit", [Amount(1000, 10), Amount(1000), Amount(0, 10)])
def test_what_is_written_is_read_again(limit: Amount) -> None:
    text = format_whole(limit, Amount(500, 5)) + format_change(Amount(100, 1)) + format_change(Amount(-50, -1))
    assert parse(text) == MaildirSize(limit, Amount(550, 5), 2)


@pytest.mark.parametrize(
    ("limit", "held", "has_room"),
    [
        (Amount(10, 0), Amount(10, 99), True),
        (Amount(10, 0), Amount(11, 1), False),
        (Amount(0, 3), Amount(1 << 40, 3), True),
        (Amount(0, 3), Amount(1, 4), False),
        (Amount(10, 3), Amount(11, 1), False),
        (Amount(10, 3), Amount(1, 4), False),
    ],
)
def test_a_limit_of_0_is_none(limit: Amount, held: Amount, *, has_room: bool) -> None:
    assert limit.has_room_for(held) is has_room


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("1.M2P3Q4.host,S=123", 123),
        ("1.M2P3Q4.host,S=123:2,S", 123),
        ("1.M2P3Q4.host,S=123,W=130:2,RS", 123),
        ("1.M2P3Q4.host:2,S", None),
        ("1.M2P3Q4.host,S=x", None),
        ("1.M2P3Q4.host,S=12x", None),
        ("1.M2P3Q4.hostS=12", None),
    ],
)
def test_the_size_in_a_name(name: str, size: int | None) -> None:
    assert size_in(name) == size


def test_folders_begin_with_a_dot() -> None:
    assert folders_of([".", "..", ".Sent", "new", "cur", "tmp", ".a.b"]) == [".Sent", ".a.b"]
