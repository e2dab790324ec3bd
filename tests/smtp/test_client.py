"""The client engine: dialogues fed whole, byte by byte and cut at random."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.fakes.transactions import ACCEPTED, BODY, ENVELOPE, PIPELINING, Letter, RecordingOwner, letters

Step = tuple[bytes, bytes]  # what the server says, and what the client writes at that

HELLO: list[Step] = [
    (b"220 mx ESMTP\r\n", b"EHLO me.example\r\n"),
]
PLAIN = b"250 mx\r\n"


def feed_whole(owner: RecordingOwner, data: bytes) -> None:
    owner.client.receive(data)


def feed_bytes(owner: RecordingOwner, data: bytes) -> None:
    for i in range(len(data)):
        owner.client.receive(data[i : i + 1])


def feed_cut(owner: RecordingOwner, data: bytes) -> None:
    dice, at = random.Random(len(data)), 0
    while at < len(data):
        step = dice.randint(1, 12)
        owner.client.receive(data[at : at + step])
        at += step


FEEDS = [feed_whole, feed_bytes, feed_cut]
Feed = Callable[[RecordingOwner, bytes], None]


def run(owner: RecordingOwner, steps: list[Step], feed: Feed) -> None:
    for said, written in steps:
        feed(owner, said)
        assert owner.take_written() == written


DIALOGUES: dict[str, tuple[list[Letter], list[Step], list[str]]] = {
    "one message, pipelined": (
        letters(1),
        [(PIPELINING, ENVELOPE), (ACCEPTED, BODY), (b"250 queued\r\n", b"")],
        ["A 250", "idle"],
    ),
    "the next envelope travels behind the final dot": (
        letters(3),
        [
            (PIPELINING, ENVELOPE),
            (ACCEPTED, BODY + ENVELOPE),
            (b"250 one\r\n" + ACCEPTED, BODY + ENVELOPE),
            (b"250 two\r\n" + ACCEPTED, BODY),
            (b"250 three\r\n", b""),
        ],
        ["A 250", "B 250", "C 250", "idle"],
    ),
    "one message, step by step": (
        letters(1),
        [
            (PLAIN, b"MAIL FROM:<s@a.example>\r\n"),
            (b"250 ok\r\n", b"RCPT TO:<r@b.example>\r\n"),
            (b"250 ok\r\n", b"DATA\r\n"),
            (b"354 go\r\n", BODY),
            (b"250 queued\r\n", b""),
        ],
        ["A 250", "idle"],
    ),
    "HELO when EHLO is unknown": (
        letters(1),
        [
            (b"502 what?\r\n", b"HELO me.example\r\n"),
            (b"250 mx\r\n", b"MAIL FROM:<s@a.example>\r\n"),
        ],
        [],
    ),
    "one recipient refused among others": (
        letters(1, 3),
        [
            (
                PIPELINING,
                b"MAIL FROM:<s@a.example>\r\nRCPT TO:<r0@b.example>\r\nRCPT TO:<r1@b.example>\r\n"
                b"RCPT TO:<r2@b.example>\r\nDATA\r\n",
            ),
            (b"250 ok\r\n250 ok\r\n550 no\r\n450 later\r\n354 go\r\n", BODY),
            (b"250 queued\r\n", b""),
        ],
        ["A#1 550", "A#2 450", "A 250", "idle"],
    ),
    "251 and 252 are accepted": (
        letters(1),
        [(PIPELINING, ENVELOPE), (b"250 ok\r\n252 perhaps\r\n354 go\r\n", BODY), (b"200 odd but fine\r\n", b"")],
        ["A 200", "idle"],
    ),
    "354 though nobody was accepted: a lone dot": (
        letters(2),
        [
            (PIPELINING, ENVELOPE),
            (b"250 ok\r\n550 no\r\n354 go\r\n", b".\r\n"),
            (b"554 no valid recipients\r\n", ENVELOPE),
        ],
        ["A#0 550"],
    ),
    "MAIL refused and the rest with it": (
        letters(2),
        [
            (PIPELINING, ENVELOPE),
            (b"550 5.1.8 no\r\n503 eh\r\n503 eh\r\n", b"RSET\r\n" + ENVELOPE),
            (b"250 reset\r\n" + ACCEPTED, BODY),
            (b"250 ok\r\n", b""),
        ],
        ["A 550", "B 250", "idle"],
    ),
    "MAIL refused and yet 354": (
        letters(1),
        [(PIPELINING, ENVELOPE), (b"451 no\r\n250 ok\r\n354 go\r\n", b".\r\n"), (b"250 an empty one\r\n", b"")],
        ["A 451", "idle"],
    ),
    "all recipients refused and DATA too": (
        letters(2),
        [
            (PIPELINING, ENVELOPE),
            (b"250 ok\r\n550 no\r\n503 no recipients\r\n", b"RSET\r\n" + ENVELOPE),
        ],
        ["A#0 550"],
    ),
    "DATA refused": (
        letters(1),
        [(PIPELINING, ENVELOPE), (b"250 ok\r\n250 ok\r\n452 full\r\n", b"")],
        ["A 452", "idle"],
    ),
    "step by step, refused at RCPT: no DATA": (
        letters(2),
        [
            (PLAIN, b"MAIL FROM:<s@a.example>\r\n"),
            (b"250 ok\r\n", b"RCPT TO:<r@b.example>\r\n"),
            (b"550 no\r\n", b"RSET\r\n"),
            (b"250 ok\r\n", b"MAIL FROM:<s@a.example>\r\n"),
        ],
        ["A#0 550"],
    ),
    "the final dot refused for good, the next one goes on": (
        letters(2),
        [
            (PIPELINING, ENVELOPE),
            (ACCEPTED, BODY + ENVELOPE),
            (b"554 spam\r\n" + ACCEPTED, BODY),
            (b"450 later\r\n", b""),
        ],
        ["A 554", "B 450", "idle"],
    ),
    "552 behind an accepted recipient means too many": (
        letters(1, 2),
        [
            (PIPELINING, b"MAIL FROM:<s@a.example>\r\nRCPT TO:<r0@b.example>\r\nRCPT TO:<r1@b.example>\r\nDATA\r\n"),
            (b"250 ok\r\n250 ok\r\n552 too many\r\n354 go\r\n", BODY),
        ],
        ["A#1 452"],
    ),
}


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("name", DIALOGUES)
def test_dialogues(name: str, feed: Feed) -> None:
    _, steps, fates = DIALOGUES[name]
    owner = RecordingOwner([Letter(letter.name, letter.recipients) for letter in DIALOGUES[name][0]])
    run(owner, HELLO + steps, feed)
    assert owner.fates == fates
