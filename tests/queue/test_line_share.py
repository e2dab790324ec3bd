"""An entry's line keeps to its share of an envelope's room, whatever the addresses, with the mark of a rule in force."""

from __future__ import annotations

import pytest

from mailismus.mail.address import MAX_ADDRESS
from mailismus.mail.ids import SpoolId
from mailismus.mail.utf8 import ADDRESS_WORDS, HEADER_WORDS
from mailismus.queue.acts.marking import FOR_EVER, marked
from mailismus.queue.files.recipient_line import LINE_SHARE, format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.words import BESIDE_ADDRESS, BESIDE_UTF8, MARK_BYTES

LATEST = FOR_EVER
"""UTC seconds: no time of a line has more digits."""
LONGEST_CLIENT = b"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"
NUMBER = 9_999_999
BIGGEST = 10**12
ASCII_SENDER = b"%" * 64 + b"@" + b"d" * 189
UTF8_SENDER = "\u00e9".encode() * 32 + b"@" + "\u00e9".encode() * 94 + b"d"


def line(sender: bytes, recipient: bytes, words: bytes | None) -> bytes:
    """The longest line of a new entry of this recipient."""
    entry = Entry(NUMBER, recipient, Area.INCOMING, LATEST, 0, None)
    entry = Entry(NUMBER, recipient, Area.HELD, LATEST, 0, None, b"", marked(entry, 999_999_999))
    message = Message(
        SpoolId((1 << 63) - 1), sender, LONGEST_CLIENT, True, LATEST - 1, BIGGEST, NUMBER, [entry], BIGGEST, words
    )
    return format_lines(message, [entry])


@pytest.mark.parametrize("size", [1, 2, 3, 24, 25, 100, MAX_ADDRESS])
def test_a_line_is_no_longer_than_its_share(size: int) -> None:
    assert len(ASCII_SENDER) == len(UTF8_SENDER) == MAX_ADDRESS
    ascii_line = line(ASCII_SENDER, b"%" * size, None)
    assert len(ascii_line) <= LINE_SHARE * (BESIDE_ADDRESS + size)
    for words in (ADDRESS_WORDS, HEADER_WORDS):
        utf8_line = line(UTF8_SENDER, b"\xc3" * size, words)
        assert len(utf8_line) <= LINE_SHARE * (BESIDE_ADDRESS + BESIDE_UTF8 + size)


def test_a_mark_is_as_long_as_it_may_be() -> None:
    entry = Entry(1, b"a@b", Area.INCOMING, LATEST, 0, None)
    assert MARK_BYTES - 3 <= len(b" %b " % marked(entry, 999_999_999)) <= MARK_BYTES
