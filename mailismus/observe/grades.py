"""Grades: how bad a reason, an outcome or a figure is, for screens (pure)."""

from __future__ import annotations

GOOD, WARN, BAD, PLAIN = "good", "warn", "bad", ""
_HOLDS = {
    **dict.fromkeys(("underway", "queued", "act", "next", ""), PLAIN),
    **dict.fromkeys(("dead", "disk", "queue", "machine", "maildir", "report"), BAD),
}
"""Grades of holds by their words; all others are warnings."""
_LOW_SHARE = 0.1
_SLOW_S = 0.1
_STATUS = {"deferred": WARN, "bounced": BAD, "expired": BAD}


def grade_of_hold(hold: str) -> str:
    """The grade of a reason, by its word."""
    return _HOLDS.get(hold, WARN)


def grade_of_status(status: str) -> str:
    """The grade of an attempt that did not deliver."""
    return _STATUS.get(status, WARN)


def grade_of_barriers(mean_s: float) -> str:
    """The grade of a disk, by the mean time of a barrier."""
    return WARN if mean_s >= _SLOW_S else PLAIN


def grade_of_space(share: float) -> str:
    """The grade of a file system, by its free share."""
    return BAD if share < _LOW_SHARE else PLAIN
