"""Unit of work: the phases of one write, all of which count, or none.

    do(phase, undo) ... commit            every undo is forgotten
    do(phase, undo) ... fails -> undo     the undos run, last first

*Rules*: a phase that raises is taken as not done: its own undo does not run. An undo that fails is passed over: what it
leaves is what a crash would leave at that place, and whoever cleans up after crashes removes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class WorkUnit:
    """One unit of work."""

    __slots__ = ("_undos",)

    def __init__(self) -> None:
        self._undos: list[Callable[[], object]] = []

    def do(self, phase: Callable[[], T], undo: Callable[[], object] | None = None) -> T:
        """Do the next phase, and remember how it is undone. Raises what the phase raises; nothing is undone by that."""
        result = phase()
        if undo is not None:
            self._undos.append(undo)
        return result

    def commit(self) -> None:
        """All phases are done for good."""
        self._undos.clear()

    def undo(self) -> None:
        """Undo the phases since the last commit, the last one first. Never raises OSError; harmless when repeated."""
        while self._undos:
            undo = self._undos.pop()
            try:
                undo()
            except OSError:
                continue
