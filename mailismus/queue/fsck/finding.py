"""Findings of a check of a stopped queue (pure): one value for each deviation from the legal states.

*Rules*: without findings worse than `HARMLESS` the server may be started. A check changes nothing.

*Not here*: the checks and repairs, which are each provider's own.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Protocol

import attrs


class Severity(enum.Enum):
    """Severity of a finding, mildest first."""

    NOTE = "note"
    """No fault, but an administrator may want to know. A repair leaves it alone."""
    HARMLESS = "harmless"
    """The next start repairs it."""
    REPAIRABLE = "repairable"
    """A repair removes the fault, and no mail is lost."""
    LOST = "lost"
    """Mail, or a part of it, can't be delivered any more. A repair keeps the remains, and the other mail is delivered."""

    @property
    def needs_repair(self) -> bool:
        """Whether an administrator must repair it."""
        return self in (Severity.REPAIRABLE, Severity.LOST)


class Done(enum.Enum):
    """Result of a repair of a finding."""

    NOTHING = "nothing was to be done"
    BY_START = "left to the start at the end of the repair"
    REPAIRED = "repaired"
    FAILED = "not repaired"


@attrs.frozen
class Finding:
    """One finding. `path` may be a directory; `offset` in bytes, None: the whole file. `what` and `repair` are sentences:
    the fault, and the repair of it."""

    severity: Severity
    kind: str
    path: str
    offset: int | None
    what: str
    repair: str
    done: Done | None = None
    """None: no repair was tried."""
    error: str = ""
    """Why it could not be repaired."""


@attrs.frozen
class Checked:
    """Number of checked things of one kind. `key`: its name for programs; `one`, `many`: its names for people."""

    key: str
    count: int
    one: str
    many: str


class FsckReport(Protocol):
    """Findings as they come, and the numbers of checked things at the end."""

    @property
    def checked(self) -> tuple[Checked, ...]:
        """In the provider's words and order. Meaningful at the end."""

    def __iter__(self) -> Iterator[Finding]: ...
