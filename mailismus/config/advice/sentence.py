"""Advice: one sentence about a configuration, and its line (pure).

*Rules*: an **error** keeps the server from starting, or mail from going where it shall; a **warning** is about what will
run but hardly as it was meant. Each says what was found and what to write or run, at the line where that stands; for a
default, the line of the element around it.
"""

from __future__ import annotations

import enum

import attrs

from mailismus.config.read.check import Given
from mailismus.config.table.words import Setting


class AdviceSeverity(enum.Enum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"


@attrs.frozen
class Advice:
    """One sentence. `line`: from 1."""

    severity: AdviceSeverity
    line: int
    text: str


def warn(line: int, text: str) -> Advice:
    """A warning."""
    return Advice(AdviceSeverity.WARNING, max(line, 1), text)


def refuse(line: int, text: str) -> Advice:
    """An error."""
    return Advice(AdviceSeverity.ERROR, max(line, 1), text)


def line_of(setting: Setting[object], *blocks: Given) -> int:
    """Where a setting of the last block stands; for a default, where the innermost of these blocks that is written does."""
    return blocks[-1].values[setting.key].line or next((block.line for block in reversed(blocks) if block.line), 1)
