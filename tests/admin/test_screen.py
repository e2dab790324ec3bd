"""A listing at a terminal."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.admin.render.listing import EMPTY
from mailismus.admin.render.screen import LEAST_WIDTH, ScreenListing
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from tests.admin.samples import LATER, MX, bounced, deferred, incoming, message

LONG = Reply(451, b"4.4.1", b"connect to relay.example[192.0.2.1]:25 failed: " + b"no route to host, really, " * 4)


def screen(*messages: Message, width: int = 80) -> list[str]:
    listing = ScreenListing(width, UTC)
    lines = [line for one in messages for line in listing.lines_of(one)]
    return [*lines, *listing.last_lines()]


def test_it_is_like_mailq_with_the_reason_on_its_own_line() -> None:
    two = message(2, bounced(), size_bytes=100)
    assert screen(message(1, deferred(2), deferred(3, b"x@y.example"), incoming(12, b"e@f.example"), sender=b""), two) == [
        "----Queue ID----- --Size-- ---Arrival Time---- --Sender/Recipient--------------",
        "0000000100000001      2000  Tue Nov 14 22:13:20 MAILER-DAEMON",
        "(deferred, 1 attempt, next Tue Nov 14 22:28:20)",
        "(mx.example[192.0.2.1]:25: 451 4.3.0 come back later)",
        "                                             -2 c@d.example",
        "                                             -3 x@y.example",
        "(incoming, 0 attempts, next Tue Nov 14 22:13:20)",
        "(not tried yet)",
        "                                            -12 e@f.example",
        "",
        "0000000100000002       100  Tue Nov 14 22:13:20 a@b.example",
        "(bounces, 1 attempt, report Tue Nov 14 22:13:20)",
        "(mx.example[192.0.2.1]:25: 550 5.1.1 no such user)",
        "                                             -1 c@d.example",
        "",
        "   4 recipients: 1 incoming, 2 deferred, 1 bounces",
        "-- 3 Kbytes in 2 Requests.",
    ]


def test_a_long_reason_is_folded_and_nothing_of_it_is_lost() -> None:
    lines = screen(message(1, deferred(reply=LONG)))
    reason = lines[3:-4]
    assert len(reason) > 2
    assert all(line.startswith(" ") for line in reason[1:])
    assert " ".join(line.strip() for line in reason) == f"({MX.decode()}: {bytes(LONG).decode().strip()} )".replace(
        ", )", ", )"
    )


@pytest.mark.parametrize("length", [20, 31, 32, 60, 73, 200])
def test_a_recipient_is_always_whole_and_moves_left_if_it_must(length: int) -> None:
    recipient = b"r" * (length - 2) + b"@d"
    line = screen(message(1, deferred(7, recipient)))[4]
    assert line.endswith(" " + recipient.decode())
    assert line.strip().startswith("-7 ")
    assert len(line) <= max(80, length + 8)


def test_a_message_in_several_parts_is_said_once() -> None:
    lines = screen(*(message(1, deferred(number), count=2) for number in (1, 2)))
    assert sum(line.startswith("0000000100000001") for line in lines) == 1
    assert "" not in lines[:-3]
    assert lines[-2:] == ["   2 recipients: 2 deferred", "-- 2 Kbytes in 1 Request."]


def test_an_empty_queue_says_so() -> None:
    assert screen() == [EMPTY]


@given(st.binary(max_size=300), st.integers(0, 300), st.floats(-1e18, 1e18))
def test_whatever_a_peer_said_no_line_is_wider_than_the_terminal_or_harms_it(said: bytes, width: int, at: float) -> None:
    entry = Entry(1, b"c@d.example", Area.DEFERRED, at, 1, Reply(LATER.code, b"", said), said[:50])
    for line in screen(message(1, entry), width=width)[2:]:
        assert line.isprintable()
        assert len(line) < max(width, LEAST_WIDTH) or line.startswith("(deferred") is False


def test_hostile_addresses_are_escaped() -> None:
    nasty = b"\x1b]0;x\x07\r\n\xc2\x9b2J\xe2\x80\xa8\xff@d.example"
    one = message(1, Entry(1, nasty, Area.DEFERRED, 0.0, 1, Reply(451, b"", nasty), nasty), sender=nasty)
    assert all(line.isprintable() for line in screen(one))
