"""What of the long look is done: kept in a file, so that it can be interrupted and gone on with.

The file begins with a fingerprint of the code looked at and of the code that looks: a change of either begins it anew.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.durability.crash.explorer import Tally

DIRECTORY_VARIABLE = "MAILISMUS_CRASH_POINTS"
"""Names the directory for the files; without it, and without pytest's cache, nothing is kept."""


class Progress:
    """Workloads that are done, with what each came to. `path` None: nothing is kept."""

    def __init__(self, path: Path | None, code: str) -> None:
        self._path = path
        self.done: dict[str, Tally] = {}
        self.before = 0
        """Of them, those of earlier runs."""
        if path is None:
            return
        if path.exists():
            first, *lines = path.read_text().splitlines() or [""]
            if first == code:
                for line in lines:
                    name, _, numbers = line.rpartition(": ")
                    if len(numbers.split()) == 4:  # the last line may have been cut short
                        self.done[name] = Tally(*map(int, numbers.split()))
                self.before = len(self.done)
        if not self.before:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code + "\n")

    def add(self, name: str, tally: Tally) -> None:
        """It is done."""
        self.done[name] = tally
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(f"{name}: {tally.workloads} {tally.crashes} {tally.trees} {tally.drained}\n")

    def total(self) -> Tally:
        """What all of them came to."""
        whole = Tally()
        for tally in self.done.values():
            whole += tally
        return whole


def path_for(name: str, cache_directory: Path | None) -> Path | None:
    """The file of one part."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    directory = Path(named) if named else cache_directory
    return directory / f"{name}.done" if directory is not None else None
