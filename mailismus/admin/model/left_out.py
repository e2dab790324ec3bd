"""The sentence about entries that could not be read (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from mailismus.queue.interface import Gap


def left_out(gaps: Iterable[Gap]) -> str:
    """Return one line: the entries that are missing from an answer, the reason, and the action."""
    said = "; ".join(map(_said, gaps))
    return f"some of the queue can't be read, and is left out: {said}; look at the disk, and at owner and mode of the files"


def _said(gap: Gap) -> str:
    others = f" and {gap.count - 1} more" if gap.count > 1 else ""
    return f"{gap.count} {gap.what if gap.count == 1 else _plural(gap.what)} ({gap.reason}: {gap.path}{others})"


def _plural(noun: str) -> str:
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
