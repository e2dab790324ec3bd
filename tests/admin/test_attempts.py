"""Attempts of an entry on their way to the one who asks: wire, lines, rows."""

from __future__ import annotations

import json
from datetime import UTC

import pytest

from mailismus.admin.protocol.wire import decode_message, encode_message
from mailismus.admin.render.attempts import attempt_lines, attempt_rows, attempt_text
from mailismus.admin.render.message import entry_lines
from mailismus.admin.render.why import why_json, why_lines
from mailismus.mail.attempts import BOUNCED, DEFERRED, PastAttempt, with_attempt
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message

AT = 1_795_247_160
HOST = b"mx.a.example[192.0.2.9]:25"


def tried(count: int, text: bytes = b"busy") -> Message:
    words = None
    for number in range(1, count + 1):
        made = PastAttempt(number, AT + 60 * number, DEFERRED, 60, b"encrypt", HOST, 451, b"4.7.1", text)
        words = with_attempt(words, made)
    entry = Entry(1, b"c@d.example", Area.DEFERRED, AT + 60.0 * (count + 1), count, None, HOST, words)
    other = Entry(2, b"e@d.example", Area.INCOMING, float(AT))
    sent = Message(SpoolId(1), b"a@b.example", b"192.0.2.1", False, float(AT), 100, 2, [entry, other])
    return decode_message(json.loads(encode_message(sent)))


def test_words_go_over_the_wire_to_the_entry_that_has_them() -> None:
    first, second = tried(2).entries
    assert [row["number"] for row in attempt_rows(first)] == [1, 2]
    assert list(attempt_rows(second)) == []
    assert next(attempt_rows(first)) == {
        "number": 1,
        "at": AT + 60,
        "host": HOST.decode(),
        "tls": "encrypt",
        "reply": "451 4.7.1 busy",
        "decided": "deferred",
        "next_attempt": AT + 120,
    }


def test_a_message_shows_the_first_attempt_the_last_and_how_many_are_left_out() -> None:
    message = tried(9)
    lines = [line for line in entry_lines(message, message.entries[0], UTC) if "attempt " in line or "not kept" in line]
    lines = [line for line in lines if not line.startswith("next attempt")]
    assert lines[0] == (
        "attempt 1:    Sat Nov 21 07:47:00 2026, mx.a.example[192.0.2.9]:25 (tls=encrypt): 451 4.7.1 busy; deferred for 1m"
    )
    assert lines[1].split(":") == ["2 to 4", "       not kept"]
    assert [line.split(":")[0] for line in lines[2:]] == [f"attempt {number}" for number in range(5, 10)]


def test_why_has_a_line_for_each_attempt_and_escapes_what_hosts_said() -> None:
    message = tried(3, b"\x1b[2J\0\r\nforged \xff")
    lines = list(why_lines(message))
    assert [line.startswith("    attempt ") for line in lines] == [False, True, True, True, False]
    assert all(line.isprintable() for line in lines)
    assert list(why_lines(message, with_attempts=False)) == [lines[0], lines[-1]]
    one, other = map(json.loads, why_json(message))
    assert len(one["tried"]) == 3
    assert one["tried"][0]["reply"].isprintable()
    assert other["tried"] == []


@pytest.mark.parametrize(("host", "shown"), [(b"none", "451 busy"), (b"", "451 busy"), (b"mx:25", "mx:25: 451 busy")])
def test_an_attempt_that_reached_no_host_names_none(host: bytes, shown: str) -> None:
    one = PastAttempt(1, AT, BOUNCED, 0, b"", host, 451, b"", b"busy")
    assert attempt_text(one, UTC) == f"Sat Nov 21 07:46:00 2026, {shown}; bounced"


@pytest.mark.parametrize(
    ("wait_s", "shown"),
    [(0, "0s"), (59, "59s"), (900, "15m"), (3661, "1h1m"), (7200, "2h"), (90061, "1d1h")],
)
def test_the_wait_is_written_as_in_the_configuration(wait_s: int, shown: str) -> None:
    one = PastAttempt(1, AT, DEFERRED, wait_s, b"", HOST, 451, b"", b"busy")
    assert attempt_text(one, UTC).endswith(f"451 busy; deferred for {shown}")


def test_attempts_before_the_first_that_is_known_are_not_kept() -> None:
    words = with_attempt(None, PastAttempt(2, AT, DEFERRED, 60, b"", b"none", 451, b"", b"busy"))
    entry = Entry(1, b"c@d.example", Area.DEFERRED, AT, 2, None, b"none", words)
    assert [label for label, _ in attempt_lines(entry, UTC)] == ["attempt 1", "attempt 2"]
