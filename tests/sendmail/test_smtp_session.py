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

    def say(self, *parts: bytes) -> list[bytes]:
        """The replies to this, cut so; those to EHLO and before it are left out."""
        waiting = list(parts)
        said: list[bytes] = []
        speak(SETTINGS, lambda size: waiting.pop(0) if waiting else b"", said.append, self._hand)
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


def test_a_program_that_ends_in_the_middle_sends_nothing() -> None:
    program = Program()
    program.say(HELLO + TO + b"DATA\r\nx\r\n")
    assert program.taken == []


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
