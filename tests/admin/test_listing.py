"""How a queue is shown."""

from __future__ import annotations

import json
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.admin.render import listing
from mailismus.admin.render.listing import EMPTY, TextListing, count_json, count_lines, json_lines, reason_of
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, AreaCount, Entry, Message, Summary
from tests.admin.samples import LATER, MX, bounced, deferred, incoming, message


def text_of(*messages: Message) -> list[str]:
    whole = TextListing(UTC)
    lines = [line for one in messages for line in whole.lines_of(one)]
    return [*lines, *whole.last_lines()]


def test_the_text_is_like_mailq() -> None:
    listed = text_of(
        message(1, deferred(2), incoming(3, b"e@f.example"), sender=b""),
        message(2, bounced(), size_bytes=100),
    )
    assert listed == [
        "----Queue ID----- --Size-- ---Arrival Time---- --Sender/Recipient------",
        "0000000100000001      2000  Tue Nov 14 22:13:20 MAILER-DAEMON",
        "(0000000100000001-2 deferred, 1 attempt, next Tue Nov 14 22:28:20: "
        "mx.example[192.0.2.1]:25: 451 4.3.0 come back later)",
        " " * 48 + "c@d.example",
        "(0000000100000001-3 incoming, 0 attempts, next Tue Nov 14 22:13:20: not tried yet)",
        " " * 48 + "e@f.example",
        "",
        "0000000100000002       100  Tue Nov 14 22:13:20 a@b.example",
        "(0000000100000002-1 bounces, 1 attempt, report Tue Nov 14 22:13:20: "
        "mx.example[192.0.2.1]:25: 550 5.1.1 no such user)",
        " " * 48 + "c@d.example",
        "",
        "-- 3 Kbytes in 2 Requests.",
    ]


def test_an_empty_queue_says_so() -> None:
    assert text_of() == [EMPTY]
    assert EMPTY == "Mail queue is empty"


def test_a_message_in_two_parts_counts_once() -> None:
    parts = [message(1, deferred(number), count=2) for number in (1, 2)]
    assert text_of(*parts)[-1] == "-- 2 Kbytes in 1 Request."


def test_a_message_counts_once_if_another_lies_between_its_parts() -> None:
    first, last = (message(1, deferred(number), count=2) for number in (1, 2))
    other = message(2, deferred(1), count=3)
    assert text_of(first, other, last, other)[-1] == "-- 4 Kbytes in 2 Requests."


def test_a_bounded_number_of_messages_in_parts_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "REMEMBERED", 2)
    one, two, three = (message(number, deferred(1), count=9) for number in (1, 2, 3))
    assert text_of(one, two, one, three, one)[-1].endswith("in 3 Requests.")
    assert text_of(one, two, three, one)[-1].endswith("in 4 Requests.")


def test_a_listing_that_ended_at_its_limit_says_so() -> None:
    for limit, lines in ((2, ["", "   the limit of 2 is reached: there may be more"]), (3, [""]), (None, [""])):
        whole = TextListing(UTC)
        assert list(whole.lines_of(message(1, deferred(1), deferred(2))))
        assert list(whole.last_lines(limit=limit)) == [*lines, "-- 2 Kbytes in 1 Request."]


def test_json_has_the_names_of_postqueue() -> None:
    (line,) = json_lines(message(1, deferred(2), deferred(5, b"e@f.example")))
    assert json.loads(line) == {
        "queue_name": "deferred",
        "queue_id": "0000000100000001",
        "arrival_time": 1_700_000_000,
        "message_size": 2000,
        "sender": "a@b.example",
        "recipients": [
            {
                "address": address,
                "number": number,
                "attempts": 1,
                "next_attempt": 1_700_000_900,
                "delay_reason": "mx.example[192.0.2.1]:25: 451 4.3.0 come back later",
            }
            for number, address in ((2, "c@d.example"), (5, "e@f.example"))
        ],
    }


def test_entries_in_different_areas_are_different_objects() -> None:
    objects = [json.loads(line) for line in json_lines(message(1, bounced(1), deferred(2), incoming(3), deferred(4)))]
    assert [(one["queue_name"], [recipient["number"] for recipient in one["recipients"]]) for one in objects] == [
        ("incoming", [3]),
        ("deferred", [2, 4]),
        ("bounces", [1]),
    ]
    assert objects[2]["recipients"][0]["bounce_reason"].endswith("550 5.1.1 no such user")


def test_every_waiting_entry_has_a_reason() -> None:
    assert reason_of(deferred(reply=None)) == b"not tried yet, waits for its time"
    assert reason_of(incoming()) == b"not tried yet"
    for host in (b"-", b"none", b"local"):
        assert reason_of(Entry(1, b"c@d", Area.DEFERRED, 0.0, 1, LATER, host)) == b"451 4.3.0 come back later"


def test_no_control_character_reaches_a_terminal() -> None:
    nasty = b"\x1b]0;x\x07\r\n\xc2\x9b2J\xe2\x80\xa8\xff@d.example"
    entry = Entry(1, nasty, Area.DEFERRED, 0.0, 1, Reply(451, b"", nasty), nasty)
    one = message(1, entry, sender=nasty)
    assert all(line.isprintable() for line in text_of(one))
    for line in json_lines(one):
        assert line.isascii()
        assert line.isprintable()


@given(st.floats(-1e18, 1e18))
def test_any_time_can_be_shown(at: float) -> None:
    assert text_of(message(1, Entry(1, b"c@d", Area.DEFERRED, at, 1, LATER, MX)))


def test_counts() -> None:
    summary = Summary(
        {**dict.fromkeys(Area, AreaCount()), Area.INCOMING: AreaCount(1, 2, 3), Area.BOUNCES: AreaCount(4, 5, 6)}, True
    )
    assert json.loads(count_json(summary)) == {
        "incoming": {"entries": 1, "messages": 2, "bytes": 3},
        "deferred": {"entries": 0, "messages": 0, "bytes": 0},
        "bounces": {"entries": 4, "messages": 5, "bytes": 6},
        "hold": {"entries": 0, "messages": 0, "bytes": 0},
        "deleted": {"entries": 0, "messages": 0, "bytes": 0},
        "exact": True,
    }
    assert [line.split() for line in count_lines(summary)] == [
        ["area", "entries", "messages", "bytes"],
        ["incoming", "1", "2", "3"],
        ["deferred", "0", "0", "0"],
        ["bounces", "4", "5", "6"],
        ["hold", "0", "0", "0"],
        ["deleted", "0", "0", "0"],
    ]
    assert "not exact" in list(count_lines(Summary(summary.areas, False)))[-1]
