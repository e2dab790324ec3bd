"""What a check of a queue that no server runs on finds (pure): a value for each thing that is not as it should be.

*Rules*: who finds nothing worse than `HARMLESS` may start the server. Nothing that is found is changed by finding it.

*Not here*: looking for it, and repairing it: each provider's own affair.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Protocol

import attrs


class Severity(enum.Enum):
    """How bad it is, mildest first."""

    NOTE = "note"
    """Nothing is wrong; somebody may want to know. A repair leaves it alone."""
    HARMLESS = "harmless"
    """The next start sees to it by itself."""
    REPAIRABLE = "repairable"
    """A repair puts it right, and no mail is lost."""
    LOST = "lost"
    """Mail, or a part of it, can't be delivered any more. A repair keeps what is left of it, and the rest goes on."""

    @property
    def needs_repair(self) -> bool:
        """Whether somebody has to do something."""
        return self in (Severity.REPAIRABLE, Severity.LOST)


class Done(enum.Enum):
    """What a repair did about a finding."""

    NOTHING = "nothing was to be done"
    BY_START = "left to the start at the end of the repair"
    REPAIRED = "repaired"
    FAILED = "not repaired"


@attrs.frozen
class Finding:
    """One thing. `path` may be a directory; `offset` in bytes, None: the whole of it. `what` and `repair` are sentences:
    what it is, and what a repair does about it."""

    severity: Severity
    kind: str
    path: str
    offset: int | None
    what: str
    repair: str
    done: Done | None = None
    """None: nobody tried."""
    error: str = ""
    """Why it could not be repaired."""


@attrs.frozen
class Checked:
    """How many of one kind of thing a check went through. `key`: its name for programs; `one`, `many`: its names for
    people."""

    key: str
    count: int
    one: str
    many: str


class FsckReport(Protocol):
    """Findings as they come, and how much was looked at when they are over."""

    @property
    def checked(self) -> tuple[Checked, ...]:
        """In the provider's words and order. Meaningful at the end."""

    def __iter__(self) -> Iterator[Finding]: ...
