"""`sendmail -bs`: SMTP on standard input and output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO

import pytest

from mailismus.config.values.settings import ProgramSettings, SendmailSettings
from mailismus.errors import StartError
from mailismus.sendmail.smtp_session import speak

SETTINGS = ProgramSettings("f", b"mx.example.net", SendmailSettings("/x", ("*",), (), b"our.example"), 1000, 2)
HELLO = b"EHLO x\r\nMAIL FROM:<a@b.example>\r\n"
TO = b"RCPT TO:<c@d.example>\r\n"


class Program:
    """What speaks: it gets replies, and what it sent is kept."""

    def __init__(self) -> None:
        self.taken: list[tuple[bytes, list[bytes], bytes]] = []
        self.refuses: StartError | None = None
        self.ended: StartError | None = None
        """How the command ends; None: with 0."""

    def say(self, *parts: bytes) -> list[bytes]:
        """The replies to this, cut so; those to EHLO and before it are left out."""
        waiting = list(parts)
        said: list[bytes] = []
        try:
            speak(SETTINGS, lambda size: waiting.pop(0) if waiting else b"", said.append, self._hand)
        except StartError as error:
            self.ended = error
        lines = b"".join(said).splitlines()
        assert lines[0] == b"220 mx.example.net ESMTP"
        return [line for line in lines[1:] if line[:3] != b"250" or line[4:5] == b"2"]

    def _hand(self, sender: bytes, recipients: Sequence[bytes], message: BinaryIO, size_bytes: int) -> str:
        data = message.read()
        assert len(data) == size_bytes
        if self.refuses is not None:
            raise self.refuses
        self.taken.append((sender, list(recipients), data))
        return "name"


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_messages_are_handed_over_whole(size: int) -> None:
    program = Program()
    text = (
        HELLO + TO + b"DATA\r\nSubject: x\r\n\r\n..dot\r\n.\r\nMAIL FROM:<>\r\n" + TO + TO + b"DATA\r\n.\r\nQUIT\r\nNOOP\r\n"
    )
    replies = program.say(*(text[place : place + size] for place in range(0, len(text), size)))
    assert [reply[:3] for reply in replies] == [
        b"250",
        b"250",
        b"354",
        b"250",
        b"250",
        b"250",
        b"250",
        b"354",
        b"250",
        b"221",
    ]
    assert replies[3] == b"250 2.0.0 Ok: taken as name"
    assert program.taken == [
        (b"a@b.example", [b"c@d.example"], b"Subject: x\n\n.dot\n"),
        (b"", [b"c@d.example", b"c@d.example"], b""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        HELLO + TO + b"DATA\r\nx\r\n",
        HELLO + TO + b"DATA\r\nx\n.\n",
        HELLO + TO,
        HELLO,
        b"EHLO x\r\nMAIL",
        b"EHLO",
        b"x" * 9999,
    ],
)
def test_a_program_that_ends_in_the_middle_sends_nothing_and_hears_so(text: bytes) -> None:
    program = Program()
    program.say(text)
    assert program.taken == []
    assert program.ended is not None
    assert program.ended.status == os.EX_DATAERR


@pytest.mark.parametrize("text", [b"", b"EHLO x\r\n", b"EHLO x\n", HELLO + b"RSET\r\n", HELLO + TO + b"DATA\r\nx\r\n.\r\n"])
def test_a_program_that_ends_without_quit_has_ended_well(text: bytes) -> None:
    program = Program()
    program.say(text)
    assert program.ended is None


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (b"EHLO x\r\nMAIL FROM:<a@b> SIZE=1001\r\n", b"552 5.3.4"),
        (HELLO + TO + TO + TO, b"452 4.5.3"),
        (HELLO + TO + b"DATA\r\n" + b"x" * 1001 + b"\r\n.\r\n", b"552 5.3.4"),
        (HELLO + TO + b"DATA\r\na\rb\r\n.\r\n", b"550 5.6.0"),
        (HELLO + b"RCPT TO:<c>\r\n", b"501 5.1.3"),
        (b"AUTH x\r\n", b"502"),
    ],
)
def test_limits_and_grammar_are_those_of_smtp(text: bytes, reply: bytes) -> None:
    program = Program()
    assert program.say(text)[-1].startswith(reply)
    assert program.taken == []


@pytest.mark.parametrize(
    ("status", "code"), [(os.EX_DATAERR, b"554 5.0.0 no\\x0a"), (os.EX_NOPERM, b"554"), (os.EX_TEMPFAIL, b"451 4.3.0")]
)
def test_what_is_not_taken_is_told_by_its_code(status: int, code: bytes) -> None:
    program = Program()
    program.refuses = StartError(status, "no\nöne")
    assert program.say(HELLO + TO + b"DATA\r\n.\r\n")[-1].startswith(code)


# A program that ends its lines with LF alone


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_lines_may_end_with_lf_alone(size: int) -> None:
    program = Program()
    text = (
        HELLO + TO + b"DATA\r\nSubject: x\r\n\r\n..dot\r\n.\r\nMAIL FROM:<>\r\n" + TO + b"DATA\r\n.\r\nQUIT\r\n"
    ).replace(b"\r\n", b"\n")
    replies = program.say(*(text[place : place + size] for place in range(0, len(text), size)))
    assert [reply[:3] for reply in replies] == [b"250", b"250", b"354", b"250", b"250", b"250", b"354", b"250", b"221"]
    assert program.taken == [(b"a@b.example", [b"c@d.example"], b"Subject: x\n\n.dot\n"), (b"", [b"c@d.example"], b"")]
    assert program.ended is None


def test_each_line_is_answered_as_it_comes() -> None:
    said: list[bytes] = []
    waiting = [b"HELO x\n", b"QUIT\n"]

    def read(size: int) -> bytes:
        assert len(said) == 3 - len(waiting)  # the greeting, and a reply to each line before
        return waiting.pop(0)

    speak(SETTINGS, read, said.append, Program()._hand)
    assert [reply[:3] for reply in said] == [b"220", b"250", b"221"]


SMUGGLED = b"MAIL FROM:<evil@x.example>%b" + b"RCPT TO:<victim@x.example>%b" + b"DATA%b" + b"smuggled%b.%b"
ENDS = [b"\n", b"\r\n", b"\r", b"\n\r", b"\r\r\n"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("before", ENDS)
@pytest.mark.parametrize("behind", ENDS)
@pytest.mark.parametrize("inner", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [1, 10_000])
def test_no_message_begins_within_another(end: bytes, before: bytes, behind: bytes, inner: bytes, size: int) -> None:
    """`end`: of the program's own lines. It doubles the dots behind these, as it must, and passes all else on."""
    content = b"x" + before + b"." + behind + SMUGGLED % ((inner,) * 5) + b"last"
    stuffed = (end + content).replace(end + b".", end + b"..")[len(end) :]
    text = (HELLO + TO + b"DATA\r\n").replace(b"\r\n", end) + stuffed + end + b"." + end + b"QUIT" + end
    program = Program()
    replies = program.say(*(text[place : place + size] for place in range(0, len(text), size)))
    assert [reply[:3] for reply in replies[:3]] == [b"250", b"250", b"354"]
    assert [reply[:3] for reply in replies[3:]] in ([b"250", b"221"], [b"550", b"221"])
    assert [(sender, recipients) for sender, recipients, _ in program.taken] in ([], [(b"a@b.example", [b"c@d.example"])])
    if program.taken:
        assert program.taken[0][2] == content.replace(b"\r\n", b"\n") + b"\n"


def test_a_session_keeps_the_line_ends_of_its_first_line() -> None:
    program = Program()
    assert program.say(b"EHLO x\nMAIL FROM:<a@b.example>\r\nQUIT\n")[0].startswith(b"500 5.5.2")
    assert program.say(b"EHLO x\r\nMAIL FROM:<a@b.example>\nRSET\r\nQUIT\r\n")[0].startswith(b"500 5.5.2")


def test_a_first_line_without_an_end_is_not_kept() -> None:
    program = Program()
    assert program.say(*[b"x" * 1000] * 50, b"\r\nQUIT\r\n")[0].startswith(b"500")
