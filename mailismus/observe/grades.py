"""Grades: how bad a reason or an outcome is, for screens (pure)."""

from __future__ import annotations

GOOD, WARN, BAD, PLAIN = "good", "warn", "bad", ""
_HOLDS = {
    **dict.fromkeys(("underway", "queued", "act", "next", ""), PLAIN),
    **dict.fromkeys(("dead", "disk", "queue", "machine", "maildir", "report"), BAD),
}
"""Grades of holds by their words; all others are warnings."""
_STATUS = {"deferred": WARN, "bounced": BAD, "expired": BAD}


def grade_of_hold(hold: str) -> str:
    """The grade of a reason, by its word."""
    return _HOLDS.get(hold, WARN)


def grade_of_status(status: str) -> str:
    """The grade of an attempt that did not deliver."""
    return _STATUS.get(status, WARN)
