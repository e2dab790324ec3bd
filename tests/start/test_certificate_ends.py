"""Ends of certificates: logged once a day from thirty days on, and shown by path."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.internet.task import Clock
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from mailismus.config.values.certificates import DAY_S, NamedCertificate
from mailismus.start.certificate_ends import METRICS, CertificateEnds

BEGIN = 1_790_000_000.0


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.advance(BEGIN)
    return clock


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What was logged."""
    found: list[str] = []

    def observe(event: LogEvent) -> None:
        found.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)  # type: ignore[arg-type]  # a callable is one
    yield found
    globalLogPublisher.removeObserver(observe)  # type: ignore[arg-type]  # as above


def ending(path: str, days: float, use: str = "listener S") -> NamedCertificate:
    return NamedCertificate(path, use, 3, BEGIN - DAY_S, BEGIN + days * DAY_S)


def test_a_certificate_that_ends_soon_is_logged_once_a_day(clock: Clock, lines: list[str]) -> None:
    ends = CertificateEnds([ending("/a", 31.5), ending("/b", 400)], clock)
    ends.start()
    assert lines == []
    clock.advance(DAY_S)
    assert lines == []
    clock.advance(DAY_S)
    words = "The certificate /a of listener S ends 2026-10-23, in"
    assert lines == [f"{words} 29 days: replace it and send SIGHUP"]
    clock.advance(DAY_S - 1)
    assert len(lines) == 1
    clock.advance(1)
    assert lines[1:] == [f"{words} 28 days: replace it and send SIGHUP"]
    ends.stop()
    clock.advance(DAY_S)
    assert len(lines) == 2
    assert clock.getDelayedCalls() == []


def test_a_reload_brings_other_certificates_and_tells_of_them_at_once(clock: Clock, lines: list[str]) -> None:
    ends = CertificateEnds([ending("/a", 400)], clock)
    ends.start()
    clock.advance(DAY_S / 2)
    ends.adopt([ending("/b", 2)])
    assert len(lines) == 1
    assert "/b of listener S ends" in lines[0]
    clock.advance(DAY_S / 2)
    assert len(lines) == 1
    clock.advance(DAY_S / 2)
    assert len(lines) == 2
    assert len(clock.getDelayedCalls()) == 1
    ends.stop()


def test_a_file_with_several_uses_is_told_once_and_each_has_its_number(clock: Clock, lines: list[str]) -> None:
    ends = CertificateEnds([ending("/a", 2), ending("/a", 2, "listener T"), ending("/b", -2)], clock)
    ends.start()
    assert len(lines) == 2
    assert METRICS[0].read(ends) == {("/a",): BEGIN + 2 * DAY_S, ("/b",): BEGIN - 2 * DAY_S}
    ends.stop()
