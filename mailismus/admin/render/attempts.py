"""The attempts of an entry for people and programs (pure): a line, or a row of plain values.

*Rules*: as in `listing`: of any host or reply only printable characters reach a terminal, and JSON is ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo

from mailismus.config.values.units import show_time_ms
from mailismus.mail.attempts import PastAttempt, attempts_of
from mailismus.observe.amounts import moment
from mailismus.observe.text import shown
from mailismus.queue.interface import Entry

NO_HOST = (b"", b"-", b"none")
"""What an outcome that reached no host names."""

_PART = re.compile(r"[0-9]+[a-z]+")
_FORM = "%a %b %d %H:%M:%S %Y"

Row = dict[str, int | str | None]


def attempt_rows(entry: Entry) -> Iterator[Row]:
    """Return the kept attempts of an entry, the first one first. Host and reply are escaped for a terminal, not for HTML."""
    for one in attempts_of(entry.words):
        yield {
            "number": one.number,
            "at": one.at,
            "host": shown(one.host),
            "tls": shown(one.tls),
            "reply": shown(one.reply),
            "decided": one.decided,
            "next_attempt": one.next_at,
        }


def attempt_lines(entry: Entry, zone: tzinfo | None = None) -> Iterator[tuple[str, str]]:
    """Return the kept attempts of an entry for people, the first one first, and where some are not kept: label and text."""
    behind = 0
    for one in attempts_of(entry.words):
        first, last = behind + 1, one.number - 1
        if first <= last:
            yield (f"attempt {first}" if first == last else f"{first} to {last}"), "not kept"
        yield f"attempt {one.number}", attempt_text(one, zone)
        behind = one.number


def attempt_text(attempt: PastAttempt, zone: tzinfo | None) -> str:
    """Return an attempt in a line: when, with which host (if any was reached) and level of TLS, the reply, the decision."""
    tls = f" (tls={shown(attempt.tls)})" if attempt.tls else ""
    decided = attempt.decided
    if attempt.next_at is not None:
        decided += f" for {_wait(attempt.wait_s)}"
    where = "" if attempt.host in NO_HOST else f"{shown(attempt.host)}{tls}: "
    return f"{moment(attempt.at, zone, _FORM)}, {where}{shown(attempt.reply)}; {decided}"


def _wait(seconds: int) -> str:
    """A time as in the configuration, by its two largest units."""
    parts = _PART.findall(show_time_ms(seconds * 1000))
    return "".join(parts[:2]) or "0s"
