"""Figures that are kept while a long comparison runs, in a file of lines, so that it can go on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.results.report import Spread, number

Figures = Mapping[str, float]


def cells(runs: Sequence[Figures], names: Sequence[str]) -> list[str]:
    """The median of each figure, of several runs with least and greatest; `-` for none."""
    found = []
    for name in names:
        values = [run[name] for run in runs]
        found.append(Spread.of(values).text() if len(values) > 1 else number(values[0]) if values else "-")
    return found


class Kept:
    """Figures by a key of words. `path` None: in memory alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[tuple[str, ...], list[Figures]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self._found.setdefault(tuple(row["key"]), []).append(row["figures"])

    def of(self, key: tuple[str, ...]) -> list[Figures]:
        """The runs of one key, in their order."""
        return list(self._found.get(key, ()))

    def add(self, key: tuple[str, ...], figures: Figures) -> None:
        """One more run. It is in the file when this returns."""
        self._found.setdefault(key, []).append(figures)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"key": key, "figures": figures}) + "\n")

    @property
    def measured(self) -> list[tuple[str, ...]]:
        """All keys, in the order of their first runs."""
        return list(self._found)
