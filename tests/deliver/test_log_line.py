"""Log lines of attempts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.deliver.log_line import NO_FIELDS, LogFields, compact, format_delays, format_lines
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.outcome.disposition import Disposition


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3.0, b"0"),
        (0.0, b"0"),
        (0.004, b"0"),
        (0.016, b"0.02"),
        (0.5, b"0.5"),
        (0.996, b"1"),
        (1.06, b"1.1"),
        (9.96, b"10"),
        (35.2, b"35"),
        (1e6, b"1000000"),
    ],
)
def test_seconds_are_compact(seconds: float, text: bytes) -> None:
    assert compact(seconds) == text


@given(st.floats(min_value=-10, max_value=1e7))
def test_compact_seconds_are_near_the_truth(seconds: float) -> None:
    shown = float(compact(seconds))
    assert abs(shown - max(0.0, seconds)) <= max(0.0051, shown * 0.06)


@given(st.binary(max_size=60))
def test_a_log_line_never_holds_a_control_byte(recipient: bytes) -> None:
    outcome = Outcome(OutcomeKind.DEFERRED, Reply(450, b"", b"later"), b"h[::1]:25")
    delays = format_delays(0, 0, 0, 0)
    dispositions = [Disposition.DEFERRED, Disposition.EXPIRED]
    lines = format_lines(SpoolId(1), [recipient, b"a@b.example"], outcome, 1.0, delays, dispositions)
    for line in lines:
        assert re.fullmatch(rb"[ -~]*", line)
    assert lines[0].endswith(b"dsn=4.0.0, status=deferred (450 later)")
    assert lines[1] == (
        b"0000000000000001: to=<a@b.example>, relay=h[::1]:25, delay=1, delays=0/0/0/0, dsn=4.0.0, "
        b"status=expired (450 later)"
    )


def test_the_level_of_tls_stands_apart_from_the_other_fields() -> None:
    assert NO_FIELDS.plus(b", converted=7bit") == LogFields(b"", b", converted=7bit")
    assert LogFields.of_tls(b"!verify") == LogFields(b"!verify", b", tls=!verify")
    assert LogFields.of_tls(b"encrypt").plus(b", sasl=PLAIN/a, tls=b") == LogFields(
        b"encrypt", b", tls=encrypt, sasl=PLAIN/a, tls=b"
    )
