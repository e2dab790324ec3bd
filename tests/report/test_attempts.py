"""Attempts of an entry in a report: for the person and in the delivery status."""

from __future__ import annotations

import attrs

from mailismus.mail.attempts import BOUNCED, DEFERRED, EXPIRED, PastAttempt, with_attempt
from mailismus.report.delivery_status import write_delivery_status
from mailismus.report.notice import write_notice
from tests.report.samples import ARRIVED, HOST, bounce, message

FIRST = "Sat, 21 Nov 2026 08:31:38 +0000"


def tried(first: int, last: int) -> bytes | None:
    words = None
    for number in range(first, last + 1):
        at, decided = int(ARRIVED) + 5 * number, EXPIRED if number == last else DEFERRED
        words = with_attempt(words, PastAttempt(number, at, decided, 5, b"", b"none", 451, b"4.4.1", b"\0 no\r\nhost"))
    return words


def test_the_first_and_the_last_attempt_are_told() -> None:
    failed = message(attrs.evolve(bounce(attempts=6), words=tried(1, 6)))
    notice = " ".join(" ".join(write_notice(b"mx.example.net", b"x@example.net", failed, 1, "", "")).split())
    assert f"It was tried 6 times, first on {FIRST}, the last time on " in notice
    status = list(write_delivery_status(b"mx.example.net", failed))
    assert "X-Mailismus-Attempts: 6" in status
    told = [line for line in status if line.startswith("X-Mailismus-Attempt:")]
    assert told[0] == f"X-Mailismus-Attempt: 1; {FIRST}; 451 4.4.1; deferred"
    assert told[-1].endswith("451 4.4.1; expired")
    assert len(told) == 6
    assert not any("\r" in line or "\0" in line or "host" in line for line in told)


def test_a_history_without_its_beginning_tells_no_first_attempt() -> None:
    failed = message(attrs.evolve(bounce(attempts=6), words=tried(4, 6)))
    notice = " ".join(write_notice(b"mx.example.net", b"x@example.net", failed, 1, "", ""))
    assert "first on" not in notice
    status = list(write_delivery_status(b"m", failed))
    assert "X-Mailismus-Attempts: 6" in status
    assert [line.split(";")[0] for line in status if "Attempt:" in line] == [f"X-Mailismus-Attempt: {n}" for n in (4, 5, 6)]


def test_an_attempt_names_its_host_and_no_text_of_a_reply() -> None:
    """What a reply about credentials says is for administrators, and a cut text can't be told from others."""
    secret = b"authentication as joe was refused by the relay"
    words = with_attempt(None, PastAttempt(1, int(ARRIVED) + 5, DEFERRED, 5, b"verify", HOST, 451, b"4.7.8", secret))
    words = with_attempt(words, PastAttempt(2, int(ARRIVED) + 9, BOUNCED, 0, b"", HOST, 550, b"5.\r\n1", b"no"))
    failed = message(attrs.evolve(bounce(attempts=2), words=words))
    told = [line for line in write_delivery_status(b"m", failed) if "Attempt:" in line]
    assert [" ".join(line.split()) for line in told] == [
        f"X-Mailismus-Attempt: 1; {FIRST}; mx.far.example [192.0.2.1]; 451 4.7.8; deferred",
        "X-Mailismus-Attempt: 2; Sat, 21 Nov 2026 08:31:42 +0000; mx.far.example [192.0.2.1]; 550; bounced",
    ]


def test_the_longest_history_is_folded_and_ascii() -> None:
    words = None
    for number in range(1, 12):
        host = b"mx%d.\xff%b[192.0.2.9]:2525" % (number, b"x" * 200)
        words = with_attempt(
            words, PastAttempt(number, 10**11 - 1, DEFERRED, 9, b"!dane", host, 451, b"4.7.1", b"\xff" * 99)
        )
    found = list(write_delivery_status(b"m", message(attrs.evolve(bounce(attempts=11), words=words))))
    assert all(line.isascii() for line in found)
    assert any("Attempt: 11;" in line for line in found)
