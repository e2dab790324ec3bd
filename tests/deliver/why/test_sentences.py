"""The sentences, as a table."""

from __future__ import annotations

from datetime import UTC

import pytest

from mailismus.deliver.why import sentences
from mailismus.deliver.why.sentences import Times, clear, said
from mailismus.mail.reply import Reply

NOW = 1_700_000_000.0  # 22:13:20
TIMES = Times(NOW, 5000.0, UTC)
BUSY = Reply(421, b"4.7.0", b"too many connections from you")
REFUSED = Reply(451, b"4.7.0", b"host refused the session: 421 4.7.0 too many connections from your host")
NO_CODE = b"host refused the session: 554 go away"
DOWN = Reply(451, b"4.4.1", b"connect to mx.example[192.0.2.1]:25 failed: Connection refused")
LABEL = b"mx.example[192.0.2.1]:25"


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        (
            sentences.busy("mx.example", 2, 2, sentences.throttled("14:02", BUSY)),
            "waits for mx.example: 2 of 2 connections busy, throttled since 14:02 after 421 4.7.0",
        ),
        (sentences.busy("mx.example", 20, 20), "waits for mx.example: 20 of 20 connections busy"),
        (
            sentences.busy("mx.example", 1, 1, sentences.starting()),
            "waits for mx.example: 1 of 1 connections busy, and more as it accepts mail",
        ),
        (
            sentences.busy("mx.example", 3, 3, sentences.throttled("14:02", REFUSED)),
            "waits for mx.example: 3 of 3 connections busy, throttled since 14:02 after 421 4.7.0",
        ),
        (sentences.throttled("14:02", REFUSED._replace(text=NO_CODE)), ", throttled since 14:02 after 554"),
        (sentences.throttled("14:02", None), ", throttled since 14:02"),
        (
            sentences.stopped("mx.example", "14:03:10", sentences.throttled("14:02", None)),
            "waits for mx.example: no connection before 14:03:10, throttled since 14:02",
        ),
        (
            sentences.stopped("mx.example", "14:03:10", sentences.spread()),
            "waits for mx.example: no connection before 14:03:10, since many servers would be connected to in one moment",
        ),
        (
            sentences.rate("mx.example", 60, 0, "14:02:09"),
            "waits for mx.example: at most 60 messages a minute, the next at 14:02:09",
        ),
        (
            sentences.rate("mx.example", 60, 100, "14:02:09"),
            "waits for mx.example: at most 60 messages and 100 recipients a minute, the next at 14:02:09",
        ),
        (
            sentences.dead("mx.example", "14:02", "14:07:00", 1, DOWN),
            "waits for mx.example: no session since 14:02, next try at 14:07:00; "
            "451 4.4.1 connect to mx.example[192.0.2.1]:25 failed: Connection refused",
        ),
        (
            sentences.dead("mx.example", "14:02", "14:22:00", 3, None),
            "waits for mx.example: no session since 14:02, 3 times in a row, next try at 14:22:00; no reply yet",
        ),
        (
            sentences.trial("mx.example"),
            "waits for mx.example: no session could be had with it, and one connection tries it again",
        ),
        (
            sentences.slow("mx.example", 12.4, 2),
            "waits for mx.example: it has not replied for 12 s, 2 messages behind that",
        ),
        (sentences.workers(200, 200), "waits for a connection: 200 of 200 in use (maxconnections)"),
        (sentences.share(20, 200), "waits for a connection: its message has 20 of 200, its share"),
        (
            sentences.looked_up("b.example", "14:02"),
            "waits for name servers: the hosts of b.example are looked up since 14:02",
        ),
        (
            sentences.lookups("b.example", 100, 100),
            "waits until the hosts of b.example can be looked up: 100 of 100 look-ups under way",
        ),
        (sentences.local(10, 10), "waits for a local delivery: 10 of 10 under way"),
        (
            sentences.user("ann", 5),
            "waits for a local delivery to ann: 5 to this user under way, or its message has its share",
        ),
        (sentences.maildir("ann", "14:02"), "waits for the maildir of ann: no answer since 14:02"),
        (
            sentences.machine("14:02:05"),
            "waits for this machine: it can't make connections, next try at 14:02:05; the log says why",
        ),
        (sentences.disk(200), "waits for the disk of the queue: 200 outcomes are not durable yet"),
        (
            sentences.unreadable("14:05:00", "no \x1b disk"),
            "waits for the queue: it can't be read, next try at 14:05:00; no \\x1b disk",
        ),
        (sentences.withheld("no \x1b lease"), "waits for the queue: nothing is handed out: no \\x1b lease"),
        (sentences.room(2500, 2500), "waits for room: 2500 of 2500 entries in hand (queuecache)"),
        (sentences.sender_share(2270, 2500), "waits for room: its sender has 2270 of 2500 entries in hand, its share"),
        (
            sentences.hop_share("mx.example", 7, 8),
            "waits for room: mail for mx.example has 7 of 8 entries in hand, its share",
        ),
        (
            sentences.given_back("mx.example", 1, 7.2),
            "waits for room: 1 entry for mx.example in hand, which wait for 7 s",
        ),
        (sentences.given_back("mx.example", 40, 7), "waits for room: 40 entries for mx.example in hand, which wait for 7 s"),
        (
            sentences.underway("mx.example[192.0.2.1]:25", "14:02", "its final dot has no reply yet"),
            "in delivery to mx.example[192.0.2.1]:25 since 14:02: its final dot has no reply yet",
        ),
        (sentences.delivering("ann", "14:02"), "in delivery to the maildir of ann since 14:02"),
        (sentences.queued("mx.example", 0), "next on a connection to mx.example"),
        (sentences.queued("mx.example", 1), "queued for mx.example: 1 message before it"),
        (sentences.queued("mx.example", 3), "queued for mx.example: 3 messages before it"),
        (
            sentences.set_up("mx.example", "its greeting", "14:02:30"),
            "waits for mx.example: its greeting is awaited since 14:02:30",
        ),
        (
            sentences.later(3, "14:30:11", Reply(451, b"4.7.1", b"greylisted"), LABEL),
            "waits until 14:30:11 for attempt 3; mx.example[192.0.2.1]:25: 451 4.7.1 greylisted",
        ),
        (sentences.later(1, "14:30:11", None, b"-"), "waits until 14:30:11 for attempt 1; no reply yet"),
        (
            sentences.report("14:30:11", Reply(550, b"5.1.1", b"no such user"), b"none"),
            "failed for good, its report is due at 14:30:11; 550 5.1.1 no such user",
        ),
        (sentences.next_one(), "nothing holds it: it is taken next, or its outcome is being written"),
        (sentences.not_begun(), "waits for the start of deliveries (delay_start), or the server stops"),
        (sentences.no_server(), "waits for the server, which does not run"),
    ],
)
def test_a_sentence(sentence: str, text: str) -> None:
    assert sentence == text


def test_times_of_today_have_no_date_and_others_do() -> None:
    assert TIMES.since(5000.0 - 3600) == "21:13"
    assert TIMES.until(5000.0 + 15) == "22:13:35"
    assert TIMES.at(NOW + 13 * 3600) == "Nov 15 11:13:20"
    assert TIMES.since(5000.0 - 13 * 3600) == "Nov 14 09:13"
    assert TIMES.since(-float("inf")) == TIMES.at(1e300) == "-"


def test_words_of_others_are_harmless_and_short() -> None:
    assert clear(b"\x1b[2Ja\r\nb\xff") == "\\x1b[2Ja\\x0d\\x0ab\\xff"
    assert len(clear(b"x" * 1000)) == sentences.MAX_NAME
    hostile = said(Reply(421, b"4.7.0", b"\x1b]0;x\x07" + b"y" * 1000), b"\x9b2J[192.0.2.1]:25")
    assert hostile.isprintable()
    assert len(hostile) < 300
