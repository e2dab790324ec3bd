"""The calendar: slots of due time, under which deferred lines lie together (pure).

A slot is 1 minute wide for what is due within the hour, 10 minutes within six hours, an hour beyond: few slots, however
far ahead retries lie, and what falls due next is close together. Its name is its start in UTC, `YYYYMMDDTHHMM`, so
names sort by time.

*Rules*: starts are multiples of the width. A name tells the start alone, and that nothing in the slot was to be tried before
it: a slot may get lines while it is far and wide and again when it is near and narrow, so what lies in it falls due up to
`WIDEST_S` behind its start.

*Not here*: when a slot is visited, its files (`cluster`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

HOLD = "hold"
"""Reserved for held entries; no slot's name."""

WIDTHS = ((3600.0, 60), (21600.0, 600))
"""Up to so many seconds ahead slots are so many seconds wide; `WIDEST_S` beyond."""
WIDEST_S = 3600

_LAST_S = 253_402_297_200
"""The last slot that four digits of year can name; nothing is tried that late."""
_NAME = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})").fullmatch


def slot_of(due_at: float, now: float) -> str:
    """The slot of what is due then (UTC seconds). What is due already goes to the slot of now."""
    ahead_s = due_at - now
    width_s = WIDEST_S
    for up_to_s, width in WIDTHS:
        if ahead_s <= up_to_s:
            width_s = width
            break
    at = min(max(due_at, now, 0), _LAST_S)
    return _name(int(at // width_s) * width_s)


def slot_start(name: str) -> float | None:
    """When the slot of this name begins (UTC seconds); None: it is no slot's name."""
    found = _NAME(name)
    if found is None:
        return None
    year, month, day, hour, minute = map(int, found.groups())
    try:
        start = datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return start if start >= 0 else None


@lru_cache(maxsize=1024)
def _name(start_s: int) -> str:
    start = datetime.fromtimestamp(start_s, UTC)
    return f"{start.year:04d}{start.month:02d}{start.day:02d}T{start.hour:02d}{start.minute:02d}"
