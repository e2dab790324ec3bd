"""The client engine: every way a server can go wrong, and a stop."""

from __future__ import annotations

import random

import pytest

from mailismus.mail.reply import Reply
from tests.fakes.transactions import ACCEPTED, ENVELOPE, Letter, RecordingOwner, letters, opened

REFUSED_SESSIONS = {
    "greeting 4xx": b"450 busy\r\n",
    "greeting 5xx": b"554 5.7.1 no mail from you\r\n",
    "greeting 421": b"421 4.3.2 closing\r\n",
    "EHLO 4xx": b"220 mx\r\n450 not now\r\n",
    "EHLO and HELO 5xx": b"220 mx\r\n550 no\r\n550 no\r\n",
    "EHLO 421": b"220 mx\r\n421 bye\r\n",
}


@pytest.mark.parametrize("name", REFUSED_SESSIONS)
def test_a_refused_session_is_never_the_messages_fault(name: str) -> None:
    owner = RecordingOwner(letters(1))
    for line in REFUSED_SESSIONS[name].splitlines(keepends=True):
        owner.client.receive(line)
    assert owner.fates == ["unusable 451"]
    assert b"host refused the session: " in owner.texts[0]
    assert owner.texts[0].split()[1].startswith(b"4.")
    assert len(owner.waiting) == 1


LOST = {
    "before MAIL's reply, on a fresh connection": (1, [b""], ["A 451"], b"before the reply to MAIL"),
    "before RCPT's reply": (1, [b"250 ok\r\n"], ["A 451"], b"before the reply to RCPT"),
    "before DATA's reply": (1, [b"250 ok\r\n250 ok\r\n"], ["A 451"], b"before the reply to RCPT or DATA"),
    "after the dot": (1, [ACCEPTED], ["A 451"], b"may have been sent"),
    "after the dot, one behind it": (2, [ACCEPTED], ["A 451", "B untried"], b"may have been sent"),
    "one delivered, the one behind it unanswered": (2, [ACCEPTED, b"250 ok\r\n"], ["A 250", "B untried"], b"ok"),
    "one delivered, the one behind it answered": (
        2,
        [ACCEPTED, b"250 ok\r\n250 ok\r\n"],
        ["A 250", "B 451"],
        b"before the reply to RCPT",
    ),
    "after a refused recipient": (1, [b"250 ok\r\n550 no\r\n"], ["A#0 550"], b"no"),
}


@pytest.mark.parametrize("name", LOST)
def test_a_lost_connection_delivers_and_fails_nothing(name: str) -> None:
    count, said, fates, text = LOST[name]
    owner = opened(*letters(count))
    for data in said:
        owner.client.receive(data)
    owner.client.lost(b"connection lost")
    assert owner.fates == fates
    assert text in owner.texts[-1]
    owner.client.lost(b"connection lost")
    assert owner.fates == fates


def test_a_kept_connection_that_is_gone_costs_the_next_message_no_attempt() -> None:
    owner = opened(*letters(1))
    owner.client.receive(ACCEPTED)
    owner.client.receive(b"250 ok\r\n")
    owner.client.begin(Letter("B"))
    owner.client.lost(b"connection lost")
    assert owner.fates == ["A 250", "idle", "B untried"]


GOODBYES = {
    "to MAIL on a fresh connection": ([b"421 4.7.0 bye\r\n"], 1, ["A 421", "end"]),
    "to MAIL of the one behind": ([ACCEPTED, b"250 ok\r\n421 bye\r\n"], 2, ["A 250", "B untried", "end"]),
    "to RCPT": ([b"250 ok\r\n421 bye\r\n"], 1, ["A 421", "end"]),
    "to DATA": ([b"250 ok\r\n250 ok\r\n421 bye\r\n"], 1, ["A 421", "end"]),
    "to the final dot": ([ACCEPTED, b"421 bye\r\n"], 2, ["A 421", "B untried", "end"]),
    "while idle": ([ACCEPTED, b"250 ok\r\n", b"421 idle too long\r\n"], 1, ["A 250", "idle", "end"]),
}


@pytest.mark.parametrize("name", GOODBYES)
def test_421_ends_the_session_wherever_it_comes(name: str) -> None:
    said, count, fates = GOODBYES[name]
    owner = opened(*letters(count))
    for data in said:
        owner.client.receive(data)
    assert owner.fates == fates
    assert owner.client.receive(b"250 ok\r\n") == 0


NONSENSE = {
    "354 to MAIL": ([b"354 go\r\n"], ["A 451", "end"]),
    "354 to RCPT": ([b"250 ok\r\n354 go\r\n"], ["A 451", "end"]),
    "250 to DATA": ([b"250 ok\r\n250 ok\r\n250 ok\r\n"], ["A 451", "end"]),
    "354 to the final dot": ([ACCEPTED, b"354 go on\r\n"], ["A 451", "B untried", "end"]),
    "no reply at all": ([b"* OK IMAP4rev1\r\n"], ["A 451", "end"]),
    "NUL": ([b"250\0ok\r\n"], ["A 451", "end"]),
    "an endless reply": ([b"250-more\r\n" * 200], ["A 451", "end"]),
    "a line of a megabyte": ([b"250 " + b"x" * (1 << 20)], ["A 451", "end"]),
    "garbage behind the final reply": ([ACCEPTED, b"250 ok\r\n250 ok\r\nwhat\r\n"], ["A 250", "B 451", "end"]),
    "all replies at once": ([ACCEPTED + b"250 queued\r\n"], ["A 451", "end"]),
    "the final reply has begun before the dot": ([ACCEPTED + b"2"], ["A 451", "end"]),
    "one reply too many behind the final one": (
        [ACCEPTED, b"250 ok\r\n" + ACCEPTED + b"250 ok\r\n"],
        ["A 250", "B 451", "end"],
    ),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_server_out_of_its_mind_is_never_believed(name: str) -> None:
    said, fates = NONSENSE[name]
    owner = opened(*letters(2))
    for data in said:
        owner.client.receive(data)
    assert owner.fates == fates


def test_the_message_is_not_sent_after_a_reply_that_came_too_early() -> None:
    owner = opened(*letters(1))
    owner.take_written()
    owner.client.receive(ACCEPTED + b"250 queued\r\n")
    assert owner.take_written() == b""


def test_size_and_body_are_told_where_they_are_offered() -> None:
    greeting = b"250-mx\r\n250-SIZE\r\n250-8BITMIME\r\n250 PIPELINING\r\n"
    owner = opened(Letter("A", eightbit=True, sender=b""), greeting=greeting)
    assert owner.writes[-1].startswith(b"MAIL FROM:<> SIZE=7 BODY=8BITMIME\r\n")
    assert opened(Letter("A", eightbit=True)).writes[-1].startswith(b"MAIL FROM:<s@a.example>\r\n")


def test_groups_have_at_most_max_pipeline_commands() -> None:
    owner = opened(*letters(1, 5), max_pipeline=3)
    assert owner.take_written().count(b"\r\n") == 1 + 3  # EHLO, then MAIL and two recipients
    owner.client.receive(b"250 ok\r\n250 ok\r\n")
    assert owner.take_written() == b""
    owner.client.receive(b"550 no\r\n")
    assert owner.take_written() == b"RCPT TO:<r2@b.example>\r\nRCPT TO:<r3@b.example>\r\nRCPT TO:<r4@b.example>\r\n"
    owner.client.receive(b"250 ok\r\n" * 3)
    assert owner.take_written() == b"DATA\r\n"
    owner.client.receive(b"354 go\r\n")
    owner.client.receive(b"250 ok\r\n")
    assert owner.fates == ["A#1 550", "A 250", "idle"]


def test_a_refused_mail_ends_the_groups() -> None:
    owner = opened(*letters(1, 5), max_pipeline=3)
    owner.take_written()
    owner.client.receive(b"550 no\r\n503 eh\r\n503 eh\r\n")
    assert owner.take_written() == b""
    assert owner.fates == ["A 550", "idle"]


def test_a_pipeline_of_one_command_is_step_by_step() -> None:
    owner = opened(*letters(2), max_pipeline=1)
    assert owner.writes[-1] == b"MAIL FROM:<s@a.example>\r\n"
    assert not owner.client.trust.is_used


def test_content_in_pieces_is_in_doubt_only_with_its_dot() -> None:
    for stop_at, text in (("pieces", b"while the message was sent"), ("dot", b"may have been sent")):
        owner = opened(Letter("A", content=None), Letter("B"))
        owner.client.receive(ACCEPTED)
        owner.take_written()
        owner.client.send_piece(b"Hel")
        owner.client.send_piece(b"lo\r")
        owner.client.send_piece(b"\n")
        assert owner.take_written() == b"Hello\r\n"
        assert not owner.client.sent
        if stop_at == "dot":
            owner.client.end_content()
            assert owner.take_written() == b".\r\n" + ENVELOPE
            assert owner.client.sent
        owner.client.lost(b"connection lost")
        assert owner.fates[0] == "A 451"
        assert text in owner.texts[0]


@pytest.mark.parametrize("pieces", [[b"no end"], [b"no end\r"], [b"", b"x"], []])
def test_content_without_a_line_end_gets_one_before_the_dot(pieces: list[bytes]) -> None:
    owner = opened(Letter("A", content=None))
    owner.client.receive(ACCEPTED)
    owner.take_written()
    for piece in pieces:
        owner.client.send_piece(piece)
    owner.client.end_content()
    assert owner.take_written() == b"".join(pieces) + b"\r\n.\r\n"
    owner = opened(Letter("A", content=b"x"))
    owner.take_written()
    owner.client.receive(ACCEPTED)
    assert owner.take_written() == b"x\r\n.\r\n"


@pytest.mark.parametrize("content", [b"Hello\r\n", b"no end", b""])
def test_content_that_came_late_goes_out_with_its_dot_and_the_next_envelope(content: bytes) -> None:
    """One write, as for content that is there at once."""
    owner = opened(Letter("A", content=None), Letter("B"))
    owner.client.receive(ACCEPTED)
    writes = len(owner.writes)
    owner.client.send_content(content)
    end = b"" if content.endswith(b"\r\n") else b"\r\n"
    assert owner.writes[writes:] == [content + end + b".\r\n" + ENVELOPE]
    owner.client.send_content(content)  # it was sent
    assert len(owner.writes) == writes + 1
    owner.client.lost(b"connection lost")
    assert owner.fates[0] == "A 451"
    assert b"may have been sent" in owner.texts[0]


def test_content_that_came_after_the_session_ended_goes_nowhere() -> None:
    owner = opened(Letter("A", content=None))
    owner.client.receive(ACCEPTED)
    owner.client.receive(b"421 4.3.2 going down\r\n")
    owner.take_written()
    owner.client.send_content(b"Hello\r\n")
    assert owner.take_written() == b""


def test_an_early_word_while_content_is_sent_defers_and_is_told() -> None:
    owner = opened(Letter("A", content=None))
    owner.client.receive(ACCEPTED)
    owner.client.send_piece(b"Hello\r\n")
    owner.client.receive(b"552 too big\r\n")
    assert owner.fates == ["A 451", "end"]
    assert b"552 too big" in owner.texts[0]


def test_421_in_the_middle_of_the_content_is_the_hosts_word() -> None:
    owner = opened(Letter("A", content=None))
    owner.client.receive(ACCEPTED)
    owner.client.send_piece(b"Hello\r\n")
    owner.client.receive(b"421 4.3.2 going down\r\n")
    assert owner.fates == ["A 421", "end"]
    owner.take_written()
    owner.client.send_piece(b"more\r\n")
    owner.client.end_content()
    assert owner.take_written() == b""


def test_content_that_cannot_be_read_ends_the_session_and_is_deferred() -> None:
    owner = opened(Letter("A", content=None), Letter("B"))
    owner.client.receive(ACCEPTED)
    owner.take_written()
    owner.client.spoil_content(Reply(451, b"4.3.0", b"unreadable"))
    assert owner.fates == ["A 451", "end"]
    assert owner.take_written() == b""


CUTS = {
    "before MAIL's reply": ([], ["A untried"], False),
    "before the dot": ([b"250 ok\r\n"], ["A untried"], False),
    "after the dot": ([ACCEPTED], ["B untried"], True),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_stop_cuts_off_what_is_before_its_dot_and_waits_for_what_is_behind(name: str) -> None:
    said, fates, waits = CUTS[name]
    owner = opened(*letters(2))
    for data in said:
        owner.client.receive(data)
    assert owner.client.cut_off() is waits
    assert owner.fates == fates
    if waits:
        owner.client.receive(b"250 queued\r\n250 ok\r\n")
        assert owner.fates == ["B untried", "A 250", "end"]


def test_quit_is_said_once_and_nothing_is_expected_after_it() -> None:
    owner = opened()
    owner.take_written()
    owner.client.quit()
    owner.client.quit()
    assert owner.take_written() == b"QUIT\r\n"
    assert owner.client.receive(b"221 bye\r\n") == 0
    assert owner.fates == ["idle"]


def test_no_server_can_have_a_message_delivered_without_a_2xx_behind_its_dot() -> None:
    """Random servers: whatever they say, a message counts as delivered only after a 2xx that followed its dot."""
    words = [
        b"250 ok\r\n",
        b"354 go\r\n",
        b"450 no\r\n",
        b"550 no\r\n",
        b"421 bye\r\n",
        b"250-a\r\n",
        b"x\r\n",
        b"2",
        b"\r\n",
    ]
    for seed in range(1500):
        dice = random.Random(seed)
        owner = opened(*letters(3))
        dots_at_delivery: list[int] = []
        for _ in range(dice.randint(1, 14)):
            before = len([fate for fate in owner.fates if fate.endswith(" 250")])
            dots = b"".join(owner.writes).count(b"\r\n.\r\n")
            owner.client.receive(b"".join(dice.choices(words, weights=[9, 4, 2, 2, 1, 1, 1, 1, 1], k=dice.randint(1, 4))))
            delivered = len([fate for fate in owner.fates if fate.endswith(" 250")]) - before
            dots_at_delivery += [dots] * delivered
        owner.client.lost(b"connection lost")
        for number, dots in enumerate(dots_at_delivery, 1):
            assert dots >= number, seed
        fates = [fate for fate in owner.fates if fate[0] in "ABC"]
        begun = 3 - len(owner.waiting)
        assert len({fate[0] for fate in fates}) == begun, seed  # each that was begun has its fate,
        assert len(fates) == begun, seed  # and one alone
