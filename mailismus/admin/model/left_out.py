"""The sentence about entries that are missing from an answer, and its exit code (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from mailismus.queue.gaps import ELSEWHERE
from mailismus.queue.interface import Gap

IOERR, TEMPFAIL = 74, 75
"""As in sysexits.h."""


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


def status_of(gaps: Iterable[Gap]) -> int:
    """The exit code of an answer with these gaps: 75 where the same command may find all soon."""
    return TEMPFAIL if all(gap.reason == ELSEWHERE for gap in gaps) else IOERR


def _said(gap: Gap) -> str:
    others = f" and {gap.count - 1} more" if gap.count > 1 else ""
    return f"{gap.count} {gap.what if gap.count == 1 else _plural(gap.what)} ({gap.reason}: {gap.path}{others})"


def _plural(noun: str) -> str:
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
