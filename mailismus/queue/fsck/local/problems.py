"""Problems that the checks of this room find: faults that any executor of repairs on files mends."""

from __future__ import annotations

from collections.abc import Callable

from mailismus.queue.fsck.faults import Fault, FaultKind
from mailismus.queue.fsck.files import RepairFiles

FileProblem = Fault[RepairFiles]
"""A fault of files."""

Mend = Callable[[RepairFiles], None]
"""Repairs one thing. Raises OSError."""


def problem(
    kind: FaultKind, path: str, offset: int | None = None, mend: Mend | None = None, /, **words: object
) -> FileProblem:
    """A problem of this kind; `words` fill its sentences."""
    return Fault(kind.finding(path, offset, words), mend)
