"""Completion in the shell (pure): commands, their options, and the words of filters."""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.admin.model.shape import By
from mailismus.queue.interface import Area

FILTERS = ("sender=", "recipient=", "domain=", "client=", "area=", "older=", "younger=", "larger=", "reply=")
"""Beginnings of filters that are no ID."""

FILTER_WORDS = (*FILTERS, *(f"area={area.value}" for area in Area))
"""The same, and filters that are whole."""

_QUEUE = (
    *("list", "count", "shape", "show", "why", "flush"),
    *("hold", "release", "delete", "bounce", "redirect", "acts", "undo", "servers"),
)
_ACT = ("--reason", "--all", "--dry-run", "--limit", "--yes")
_BY = tuple(by.value for by in By)
_FIRST = (*_QUEUE, "queue", "help", "exit", "quit")
_OPTIONS = {
    "list": ("--json", "--limit"),
    "count": ("--json",),
    "shape": ("--by", "--json", "--limit", "--svg"),
    "show": ("--body",),
    "why": ("--json", "--limit"),
    "flush": (),
    "hold": (*_ACT, "--for", "--incoming"),
    "release": _ACT,
    "delete": _ACT,
    "bounce": _ACT,
    "redirect": (*_ACT, "--to"),
    "acts": ("--json", "--resume"),
    "undo": (),
    "servers": ("--json",),
}


def candidates(before: Sequence[str], word: str) -> list[str]:
    """Return the completions of `word` after the words `before`. A space at the end of one means that the word is
    complete."""
    first: tuple[str, ...] = _FIRST
    if before[:1] == ["queue"]:
        before, first = before[1:], _QUEUE
    if not before:
        return [f"{name} " for name in first if name.startswith(word)]
    command = before[0]
    if command == "help":
        return [f"{name} " for name in _QUEUE if name.startswith(word) and len(before) == 1]
    options = _OPTIONS.get(command)
    if options is None:
        return []
    if word.startswith("-"):
        return [f"{name} " for name in options if name.startswith(word) and name not in before]
    if before[-1] == "--by":
        return [f"{name} " for name in _BY if name.startswith(word)]
    if command in ("show", "why", "acts", "undo", "servers") or before[-1] in ("--limit", "--reason", "--for", "--to"):
        return []
    if word.startswith("area="):
        return [f"area={area.value} " for area in Area if f"area={area.value}".startswith(word)]
    return [name for name in FILTERS if name.startswith(word)]
