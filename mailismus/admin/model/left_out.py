"""The sentence about entries that are missing from an answer, and whether it will find them soon (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from mailismus.queue.gaps import ELSEWHERE
from mailismus.queue.interface import Gap


def left_out(gaps: Iterable[Gap]) -> str:
    """Return one line: the entries that are missing from an answer, the reason, and the action."""
    unread: list[str] = []
    elsewhere: list[str] = []
    for gap in gaps:
        (elsewhere if gap.reason == ELSEWHERE else unread).append(_said(gap))
    lines = []
    if unread:
        lines.append(f"some of the queue can't be read, and is left out: {'; '.join(unread)}")
        lines.append("look at the disk, and at owner and mode of the files")
    if elsewhere:
        lines.append(f"left alone: {'; '.join(elsewhere)}")
        lines.append("give the command again once that has ended, or give it at that server")
    return "; ".join(lines)


def is_elsewhere(gaps: Iterable[Gap]) -> bool:
    """Whether the same command may find all soon, for another server has what is missing."""
    return all(gap.reason == ELSEWHERE for gap in gaps)


def _said(gap: Gap) -> str:
    others = f" and {gap.count - 1} more" if gap.count > 1 else ""
    return f"{gap.count} {gap.what if gap.count == 1 else _plural(gap.what)} ({gap.reason}: {gap.path}{others})"


def _plural(noun: str) -> str:
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
