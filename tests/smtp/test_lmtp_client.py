"""The client engine of LMTP: a reply for each recipient behind the final dot, and servers that do not keep to that."""

from __future__ import annotations

import pytest

from mailismus.smtp.client.state import ClientState
from tests.fakes.transactions import BODY, Letter, LmtpRecorder, letters
from tests.smtp.test_client import FEEDS, Feed, Step, feed_whole, run

GREETING: list[Step] = [(b"220 store LMTP\r\n", b"LHLO me.example\r\n")]
PIPELINING = b"250-store\r\n250 PIPELINING\r\n"
MAIL = b"MAIL FROM:<s@a.example>\r\n"
THREE = MAIL + b"RCPT TO:<r0@b.example>\r\nRCPT TO:<r1@b.example>\r\nRCPT TO:<r2@b.example>\r\nDATA\r\n"
ACCEPTED = b"250 ok\r\n250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n"
"""Replies to `THREE`."""
ONE = MAIL + b"RCPT TO:<r@b.example>\r\nDATA\r\n"
IN_DOUBT = b"451 4.4.2 connection lost after the final dot: the message may have been sent"


def mixed() -> list[Letter]:
    """One with three recipients, and one with one."""
    return [*letters(1, 3), Letter("B")]


DIALOGUES: dict[str, tuple[list[Letter], list[Step], list[str]]] = {
    "each recipient has a reply of its own": (
        letters(1, 3),
        [(PIPELINING, THREE), (ACCEPTED, BODY), (b"250 2.0.0 in\r\n452 4.2.2 full\r\n550 5.1.1 gone\r\n", b"")],
        ["A@0 250", "A@1 452", "A 550", "idle"],
    ),
    "only accepted recipients have one": (
        letters(1, 3),
        [
            (PIPELINING, THREE),
            (b"250 ok\r\n250 ok\r\n550 5.1.1 unknown\r\n250 ok\r\n354 go\r\n", BODY),
            (b"250 in\r\n452 full\r\n", b""),
        ],
        ["A#1 550", "A@0 250", "A 452", "idle"],
    ),
    "one recipient is as by SMTP": (
        letters(2),
        [(PIPELINING, ONE), (b"250 ok\r\n250 ok\r\n354 go\r\n", BODY + ONE), (b"250 in\r\n", b"")],
        ["A 250"],
    ),
    "the next envelope travels behind the final dot, its replies behind those of all recipients": (
        mixed(),
        [
            (PIPELINING, THREE),
            (ACCEPTED, BODY + ONE),
            (b"250 in\r\n250 in\r\n250 in\r\n250 ok\r\n250 ok\r\n354 go\r\n", BODY),
            (b"250 in\r\n", b""),
        ],
        ["A@0 250", "A@1 250", "A 250", "B 250", "idle"],
    ),
    "step by step where nothing is offered": (
        letters(1, 3),
        [
            (b"250 store\r\n", MAIL),
            (b"250 ok\r\n", b"RCPT TO:<r0@b.example>\r\n"),
            (b"250 ok\r\n", b"RCPT TO:<r1@b.example>\r\n"),
            (b"550 no\r\n", b"RCPT TO:<r2@b.example>\r\n"),
            (b"250 ok\r\n", b"DATA\r\n"),
            (b"354 go\r\n", BODY),
            (b"250 in\r\n", b""),
            (b"451 not now\r\n", b""),
        ],
        ["A#1 550", "A@0 250", "A 451", "idle"],
    ),
    "nobody accepted and DATA refused": (
        mixed(),
        [
            (PIPELINING, THREE),
            (b"250 ok\r\n550 no\r\n550 no\r\n550 no\r\n503 no recipients\r\n", b"RSET\r\n" + ONE),
        ],
        ["A#0 550", "A#1 550", "A#2 550"],
    ),
    "nobody accepted and yet 354: nobody knows how many replies follow": (
        mixed(),
        [(PIPELINING, THREE), (b"250 ok\r\n550 no\r\n550 no\r\n550 no\r\n354 go\r\n", b"")],
        ["A#0 550", "A#1 550", "A#2 550", "end"],
    ),
    "MAIL refused and yet 354": (
        letters(1, 3),
        [(PIPELINING, THREE), (b"451 no\r\n250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n", b"")],
        ["A 451", "end"],
    ),
    "DATA refused is the outcome of all": (
        letters(1, 3),
        [(PIPELINING, THREE), (b"250 ok\r\n250 ok\r\n250 ok\r\n250 ok\r\n451 no\r\n", b"")],
        ["A 451", "idle"],
    ),
    "421 for one recipient: the others have their replies, nothing begins any more": (
        mixed(),
        [(PIPELINING, THREE), (ACCEPTED, BODY + ONE), (b"250 in\r\n421 4.3.2 going\r\n250 in\r\n", b"")],
        ["A@0 250", "B untried", "A@1 421", "A 250", "end"],
    ),
    "421 for the last recipient ends the session": (
        letters(1, 3),
        [(PIPELINING, THREE), (ACCEPTED, BODY), (b"250 in\r\n250 in\r\n421 going\r\n", b"")],
        ["A@0 250", "A@1 250", "A 421", "end"],
    ),
    "421 for all": (
        letters(1, 3),
        [(PIPELINING, THREE), (ACCEPTED, BODY), (b"421 a\r\n421 b\r\n421 c\r\n", b"")],
        ["A@0 421", "A@1 421", "A 421", "end"],
    ),
    "421 before the content is that of all": (
        letters(1, 3),
        [(PIPELINING, THREE), (b"250 ok\r\n250 ok\r\n421 4.3.2 going\r\n", b"")],
        ["A 421", "end"],
    ),
    "3xx behind the dot is no reply": (
        letters(1, 3),
        [(PIPELINING, THREE), (ACCEPTED, BODY), (b"250 in\r\n354 what\r\n250 in\r\n", b"")],
        ["A@0 250", "A 451", "end"],
    ),
    "what is no reply behind the dot leaves the rest in doubt": (
        letters(1, 3),
        [(PIPELINING, THREE), (ACCEPTED, BODY), (b"250 in\r\nnonsense\r\n", b"")],
        ["A@0 250", "A 451", "end"],
    ),
    "an endless line behind the dot leaves the rest in doubt": (
        letters(1, 3),
        [(PIPELINING, THREE), (ACCEPTED, BODY), (b"250 in\r\n250 " + b"x" * 3000, b"")],
        ["A@0 250", "A 451", "end"],
    ),
    "endless lines of one reply leave the rest in doubt": (
        letters(1, 3),
        [(PIPELINING, THREE), (ACCEPTED, BODY), (b"250 in\r\n" + b"250-more\r\n" * 200, b"")],
        ["A@0 250", "A 451", "end"],
    ),
    "LHLO refused: there is no other greeting": (letters(1), [(b"500 5.5.1 what?\r\n", b"")], ["unusable 451"]),
    "LHLO refused for now": (letters(1), [(b"421 4.3.2 later\r\n", b"")], ["unusable 451"]),
}


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("name", DIALOGUES)
def test_dialogue(name: str, feed: Feed) -> None:
    some, steps, fates = DIALOGUES[name]
    owner = LmtpRecorder([Letter(one.name, one.recipients, one.content) for one in some])
    run(owner, GREETING, feed)
    run(owner, steps, feed)
    assert owner.fates == fates


def test_a_reply_too_many_ends_the_session_and_changes_no_outcome() -> None:
    owner = LmtpRecorder(letters(1, 3))
    run(owner, [*GREETING, (PIPELINING, THREE), (ACCEPTED, BODY)], feed_whole)
    owner.client.receive(b"250 in\r\n250 in\r\n250 in\r\n250 in\r\n")
    assert owner.fates == ["A@0 250", "A@1 250", "A 250", "end"]


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_a_lost_connection_leaves_in_doubt_those_without_a_reply(answered: int) -> None:
    owner = LmtpRecorder(mixed())
    run(owner, [*GREETING, (PIPELINING, THREE), (ACCEPTED, BODY + ONE)], feed_whole)
    owner.client.receive(b"250 in\r\n" * answered)
    owner.client.lost(b"connection lost")
    assert owner.fates == [*[f"A@{position} 250" for position in range(answered)], "A 451", "B untried"]
    assert owner.texts[-1] == IN_DOUBT
    assert owner.client.state is ClientState.ENDED


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_connection_that_is_lost_before_the_dot_is_not_in_doubt(count: int) -> None:
    owner = LmtpRecorder(letters(1, 3))
    run(owner, [*GREETING, (PIPELINING, THREE)], feed_whole)
    owner.client.receive(b"250 ok\r\n" * count)
    owner.client.lost(b"connection lost")
    assert owner.fates == ["A 451"]
    assert b"may have been sent" not in owner.texts[-1]


def test_a_stop_waits_for_the_replies_of_all_recipients() -> None:
    owner = LmtpRecorder(mixed())
    run(owner, [*GREETING, (PIPELINING, THREE), (ACCEPTED, BODY + ONE), (b"250 in\r\n", b"")], feed_whole)
    assert owner.client.cut_off()
    owner.client.receive(b"452 full\r\n")
    assert owner.client.state is ClientState.STOPPING
    owner.client.receive(b"250 in\r\n")
    assert owner.fates == ["A@0 250", "B untried", "A@1 452", "A 250", "end"]


def test_content_in_pieces_has_a_reply_a_recipient_too() -> None:
    owner = LmtpRecorder([Letter("A", [b"r0@b.example", b"r1@b.example"], None)])
    run(owner, [*GREETING, (b"250-store\r\n250 PIPELINING\r\n", MAIL + THREE[len(MAIL) : -30] + b"DATA\r\n")], feed_whole)
    owner.client.receive(b"250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n")
    owner.client.send_piece(b"Hel")
    owner.client.send_piece(b"lo\r\n")
    owner.client.end_content()
    assert owner.take_written() == BODY
    owner.client.receive(b"250 in\r\n550 no\r\n")
    assert owner.fates == ["A@0 250", "A 550", "idle"]


def test_what_the_server_offers_counts() -> None:
    letter = Letter("A", eightbit=True)
    owner = LmtpRecorder([letter])
    run(owner, GREETING, feed_whole)
    owner.client.receive(b"250-store\r\n250-SIZE 1000\r\n250-8BITMIME\r\n250 PIPELINING\r\n")
    assert owner.take_written().startswith(b"MAIL FROM:<s@a.example> SIZE=7 BODY=8BITMIME\r\nRCPT ")
    assert owner.client.opening.offers.max_size_bytes == 1000
