"""The message of a program: completed, without blind copies, and otherwise as it was written."""

from __future__ import annotations

import io
import os

import pytest

from mailismus.errors import StartError
from mailismus.sendmail.addresses import parse_addresses
from mailismus.sendmail.header import MOST_HEADER_BYTES, Completion, author_of
from mailismus.sendmail.message import read_message

MISSING = Completion(b"Joe <joe@our.example>", b"Mon, 1 Jan 2024 00:00:00 +0000", b"<1@our.example>")
ADDED = b"From: Joe <joe@our.example>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nMessage-ID: <1@our.example>\n"


def read(
    text: bytes, *, has_dot_end: bool = False, reads_recipients: bool = True, most_bytes: int = 0
) -> tuple[bytes, tuple[bytes, ...]]:
    """What is sent of a message, and the recipients of its header."""
    found = read_message(io.BytesIO(text), MISSING, most_bytes, has_dot_end=has_dot_end, reads_recipients=reads_recipients)
    with found.file as file:
        data = file.read()
    assert len(data) == found.size_bytes
    return data, found.recipients


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (b"To: a\n\nbody\n", b"To: a\n" + ADDED + b"\nbody\n"),
        (b"To: a\r\nSubject: x\r\n\r\nb\r\n", b"To: a\r\nSubject: x\r\n" + ADDED + b"\r\nb\r\n"),
        (b"just a body\n", ADDED + b"\njust a body\n"),
        (b"\nSubject: in the body\n", ADDED + b"\nSubject: in the body\n"),
        (b"", ADDED + b"\n"),
        (b"To: a", b"To: a\n" + ADDED + b"\n"),
        (b"From joe Mon Jan  1 00:00:00 2024\nTo: a\n\nx", b"To: a\n" + ADDED + b"\nx"),
        (b"to: a\nfrom: b\nDATE : c\nmessage-id:\n d\n\nx", b"to: a\nfrom: b\nDATE : c\nmessage-id:\n d\n\nx"),
        (b"Bcc: secret@a\n ,more@b\nTo: a\nbCC:\n\nx", b"To: a\n" + ADDED + b"\nx"),
        (b"To: a\nno field\n", b"To: a\n" + ADDED + b"\nno field\n"),
    ],
)
def test_what_is_missing_is_added_behind_the_last_field(text: bytes, sent: bytes) -> None:
    assert read(text, reads_recipients=False) == (sent, ())


def test_blind_copies_are_recipients_and_not_shown() -> None:
    data, recipients = read(b"To: a\nCc: b,\n c\nBcc: d\nReply-To: e\n\nBcc: f\n")
    assert recipients == (b"a", b"b", b"c", b"d")
    assert b"d" not in data.split(b"Reply-To")[0]
    assert data.endswith(b"\n\nBcc: f\n")


def test_a_message_that_is_sent_again_has_recipients_and_fields_of_its_own() -> None:
    data, recipients = read(b"Resent-To: z\nResent-Bcc: y\nTo: a\nFrom: b\nDate: c\nMessage-ID: d\n\n")
    assert recipients == (b"z", b"y")
    assert data.startswith(b"Resent-To: z\nTo: a\nFrom: b\nDate: c\nMessage-ID: d\nResent-From: Joe <")
    assert b"Resent-Date: Mon" in data
    assert b"Resent-Message-ID: <1@" in data
    assert b"Resent-Bcc" not in data


def test_a_lonely_dot_ends_it_only_where_it_may() -> None:
    text = b"To: a\n\nx\n.\nlost\n"
    assert read(text, has_dot_end=True)[0].endswith(b"\n\nx\n")
    assert read(text)[0].endswith(b"\n\nx\n.\nlost\n")
    assert read(b"To: a\r\n\r\n..\r\n.\r\nlost", has_dot_end=True)[0].endswith(b"\r\n..\r\n")


def test_very_long_lines_stay_whole_whatever_stands_where_they_are_cut() -> None:
    body = b"x" * 65_535 + b"\r\n" + b"y" * 65_535 + b".\n" + b"z" * 200_000
    assert read(b"To: a\n\n" + body, has_dot_end=True)[0].endswith(b"\n\n" + body)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"To: a\n\n" + b"x" * 100_000, "larger than 100000 bytes"),
        (b"To: a\n\na\rb", "CR"),
        (b"To: a\n\n" + b"x" * 65_535 + b"\ry", "CR"),
        (b"To: a\n\nx\r", "CR"),
        (b"To: a\n\n\0", "NUL"),
        (b"To: a\0\n\n", "NUL"),
        (b"To: a b\n\n", "the field To can't be read"),
        (b"To: " + b"a" * 70_000 + b"\n\n", "longer than"),
        (b"X: a\n" * (MOST_HEADER_BYTES // 5 + 1), "larger than 1048576"),
    ],
)
def test_what_no_server_would_take_is_refused(text: bytes, told: str) -> None:
    with pytest.raises(StartError, match=told) as caught:
        read(text, most_bytes=100_000)
    assert caught.value.status == os.EX_DATAERR


@pytest.mark.parametrize("name", ["Joe", 'J. "R" Doe', "Jörg Müller", "x" * 300, "a\nBcc: b\r\n\0c", "ö" * 100, "(x", "\\"])
def test_a_full_name_is_no_way_into_the_header(name: str) -> None:
    author = author_of(name, b"a@b.example")
    assert parse_addresses(author) == [b"a@b.example"]
    assert all(line.startswith(b" ") for line in author.split(b"\n")[1:])
    assert author.isascii()
    assert author_of("", b"a@b") == b"a@b"
