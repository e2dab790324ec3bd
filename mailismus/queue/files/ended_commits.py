"""Ended commits: their listeners are told when all commits of a batch are applied.

*Rules*: a listener is told once of all its commits that ended well, in the order in which they were begun. A failed commit
is told at once. What a listener raises is a defect of its own: it is logged, and the others are told all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from twisted.logger import Logger

from mailismus.errors import StorageError
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import CommitListener


class ICommitted(Protocol):
    """One commit. `listener` knows it by `mark`."""

    @property
    def listener(self) -> CommitListener[Any]: ...

    @property
    def mark(self) -> object: ...


class EndedCommits:
    """Those of one queue."""

    _log = Logger()

    def __init__(self) -> None:
        self._ended: dict[CommitListener[Any], tuple[list[object], list[Sequence[SpoolId]]]] = {}
        """Those that have ended well since the last `tell`: marks, and the messages that each was the end of."""

    def add(self, commit: ICommitted, gone: Sequence[SpoolId]) -> None:
        """Note that a commit has ended well, for the next `tell`. `gone`: messages that it was the end of."""
        known = self._ended.get(commit.listener)
        if known is None:
            known = self._ended[commit.listener] = ([], [])
        known[0].append(commit.mark)
        known[1].append(gone)

    def tell(self) -> None:
        """Tell all listeners of the commits that have ended well."""
        ended, self._ended = self._ended, {}
        for listener, (marks, gone) in ended.items():
            try:
                listener.on_durable(marks, gone)
            except Exception:
                self._log.failure("What follows from a durable commit failed")

    def fail(self, commit: ICommitted, error: StorageError) -> None:
        """Tell that a commit failed."""
        try:
            commit.listener.on_failed((commit.mark,), error)
        except Exception:
            self._log.failure("What follows from a failed commit failed")
