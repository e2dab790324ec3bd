"""The attempts of an entry for people and programs (pure): a line, or a row of plain values.

*Rules*: as in `listing`: of any host or reply only printable characters reach a terminal, and JSON is ASCII.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from mailismus.admin.render.listing import moment
from mailismus.mail.attempts import PastAttempt, attempts_of
from mailismus.observe.text import shown
from mailismus.queue.interface import Entry

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


def attempt_text(attempt: PastAttempt, zone: tzinfo | None) -> str:
    """Return an attempt in a line: when, with which host (if any was reached) and level of TLS, the reply, the decision."""
    tls = f" (tls={shown(attempt.tls)})" if attempt.tls else ""
    decided = attempt.decided
    if attempt.next_at is not None:
        decided += f" until {moment(attempt.next_at, zone, _FORM)}"
    where = "" if attempt.host in (b"", b"none") else f"{shown(attempt.host)}{tls}: "
    return f"{moment(attempt.at, zone, _FORM)}, {where}{shown(attempt.reply)}; {decided}"
