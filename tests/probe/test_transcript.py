"""The transcript: replies by command, bounded."""

from __future__ import annotations

import pytest

from mailismus.probe.report import MAX_LINES
from mailismus.probe.transcript import GREETING, MAX_EXCHANGES, Transcript


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_replies_belong_to_their_commands(size: int) -> None:
    transcript = Transcript()
    answers = [
        (b"EHLO me\r\n", b"220-hello\r\n220 there\r\n"),
        (b"STARTTLS\r\n", b"250-mx\r\n250-STARTTLS\r\n250 SIZE 5\r\n"),
        (b"EHLO me\r\n", b"220 go on\r\n"),
        (b"QUIT\r\n", b"250-mx\r\n250-SIZE 5\r\n250 AUTH PLAIN\r\n"),
        (b"", b"221 bye\r\n"),
    ]
    for command, reply in answers:
        for start in range(0, len(reply), size):
            transcript.received(reply[start : start + size])
        transcript.sent((command[:2], command[2:]))
    assert transcript.reply_to(GREETING) == b"220-hello\n220 there"
    assert transcript.reply_to(b"STARTTLS") == b"220 go on"
    assert transcript.offers(0) == (b"STARTTLS", b"SIZE 5")
    assert transcript.offers(1) == (b"SIZE 5", b"AUTH PLAIN")
    assert transcript.offers(2) == ()
    assert transcript.reply_to(b"HELO") == b""


def test_a_refused_ehlo_offers_nothing() -> None:
    transcript = Transcript()
    transcript.received(b"220 x\r\n")
    transcript.sent((b"EHLO me\r\n",))
    transcript.received(b"502-no\r\n502 STARTTLS\r\n")
    assert transcript.offers(0) == ()


@pytest.mark.parametrize(
    "data",
    [b"x" * 10**6, b"220-a\r\n" * 10**5, b"220 a\r\n" * 10**5, b"220-" + b"a" * 2000 + b"\r\n220 b\r\n", b"\0" * 5000],
)
def test_what_a_host_sends_takes_little_memory(data: bytes) -> None:
    transcript = Transcript()
    for start in range(0, len(data), 4096):
        transcript.received(data[start : start + 4096])
    for _ in range(1000):
        transcript.sent((b"NOOP\r\n",))
        transcript.received(b"250 ok\r\n")
    assert transcript.has_bytes
    kept = transcript.reply_to(GREETING) + b"".join(transcript.offers(0))
    assert len(kept) < 10_000
    assert len(transcript._replies) <= MAX_EXCHANGES


def test_of_a_reply_so_many_lines_are_kept() -> None:
    transcript = Transcript()
    transcript.received(b"220-a\r\n" * 99 + b"220 b\r\n")
    assert transcript.reply_to(GREETING) == b"\n".join([b"220-a"] * MAX_LINES)


def test_half_a_reply_before_tls_is_forgotten() -> None:
    transcript = Transcript()
    transcript.received(b"220 x\r\n")
    transcript.sent((b"EHLO me\r\n",))
    transcript.received(b"250-x\r\n250 STARTTLS\r\n")
    transcript.sent((b"STARTTLS\r\n",))
    transcript.received(b"220 go\r\n250-evil")
    transcript.begin_secure()
    transcript.sent((b"EHLO me\r\n",))
    transcript.received(b"250-x\r\n250 SIZE 1\r\n")
    assert transcript.offers(1) == (b"SIZE 1",)
