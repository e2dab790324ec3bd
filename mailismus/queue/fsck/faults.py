"""Faults: findings with their repairs, and kinds of findings (pure).

Each provider has a table of its kinds: an enum of `FaultKind`, whose values are the severity and two sentences. A kind has
one severity. `{...}` in a sentence is filled in by the check that finds it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

from mailismus.queue.fsck.finding import Done, Finding, Severity

E_contra = TypeVar("E_contra", contravariant=True)
"""What executes the repairs of a provider. A fault that any executor repairs is one of each provider."""


class FaultKind(enum.Enum):
    """Severity, description, and what a repair does."""

    @property
    def severity(self) -> Severity:
        """Of findings of this kind."""
        severity: Severity = self.value[0]
        return severity

    @property
    def code(self) -> str:
        """Name for programs, such as `cluster-dead`."""
        return self.name.lower().replace("_", "-")

    def finding(self, path: str, offset: int | None, words: dict[str, object]) -> Finding:
        """A finding of this kind; `words` fill its sentences."""
        severity, what, repair = self.value
        return Finding(severity, self.code, path, offset, what.format(**words), repair.format(**words))


@attrs.frozen
class Fault(Generic[E_contra]):
    """A finding with its repair; no repair: it is left alone, or left to the start. Without a finding: a further part of the
    repair of an earlier finding."""

    finding: Finding | None
    mend: Callable[[E_contra], None] | None = None
    """Repairs one thing. Raises OSError."""

    @property
    def left_to(self) -> Done:
        """Result of a repair of a fault that has none."""
        is_note = self.finding is not None and self.finding.severity is Severity.NOTE
        return Done.NOTHING if is_note else Done.BY_START
