"""Attempts of an entry in a report: for the person and in the delivery status."""

from __future__ import annotations

import attrs

from mailismus.mail.attempts import DEFERRED, EXPIRED, PastAttempt, with_attempt
from mailismus.report.delivery_status import write_delivery_status
from mailismus.report.notice import write_notice
from tests.report.samples import ARRIVED, bounce, message

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
    assert f"X-Mailismus-First-Attempt-Date: {FIRST}" in status
    assert not any("\r" in line or "\0" in line for line in status if "Attempt" in line)


def test_a_history_without_its_beginning_tells_no_first_attempt() -> None:
    failed = message(attrs.evolve(bounce(attempts=6), words=tried(4, 6)))
    notice = " ".join(write_notice(b"mx.example.net", b"x@example.net", failed, 1, "", ""))
    assert "first on" not in notice
    assert not any(line.startswith("X-Mailismus-") and "Attempt" in line for line in write_delivery_status(b"m", failed))
