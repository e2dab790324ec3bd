"""Gaps: the files and entries that a search or a count could not read (pure)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from mailismus.queue.interface import Gap

ELSEWHERE = "another server has it under way"
"""The reason of entries of a shared queue that an act of this server leaves alone. They are well."""


class Gaps:
    """The gaps so far: one `Gap` of each kind and reason, with the number of files that it stands for."""

    def __init__(self, gaps: Iterable[Gap] = ()) -> None:
        self._found: dict[tuple[str, str], Gap] = {}
        self.add(gaps)

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, gaps: Iterable[Gap]) -> None:
        """Add these gaps."""
        for gap in gaps:
            key = gap.what, gap.reason
            known = self._found.get(key)
            self._found[key] = gap if known is None else attrs.evolve(known, count=known.count + gap.count)

    def all(self) -> tuple[Gap, ...]:
        """Return all gaps."""
        return tuple(self._found.values())


def gap_of(what: str, path: str, error: OSError) -> Gap:
    """Return the gap of one file that can't be read because of this error."""
    return Gap(what, error.strerror or str(error), 1, path)
