"""Choices: what was measured and could be otherwise. A server uses the defaults; `benchmarks.log_choices` tries the others.

Why the defaults are the defaults: `docs/decisions/0026-the-log-is-the-queue`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from mailismus.disk.interface import IDisk
from mailismus.journal.commit import COMPANY_S
from mailismus.queue.providers.log.format.positions import Positions

ROUND_S = 10.0
"""Seconds between two rounds."""


class IPositionsFile(Protocol):
    """Where positions are kept."""

    def write(self, positions: Positions) -> None:
        """Write them, durably. Blocks. Raises OSError."""


@attrs.frozen
class LogChoices:
    """What one queue does."""

    company_s: float = COMPANY_S
    """Seconds that settlements are delayed at most so that several share a barrier."""
    round_s: float = ROUND_S
    """Seconds between two rounds of marks and positions."""
    segments_a_round: int = 1
    """A round comes earlier when so many segments are complete."""
    positions: Callable[[IDisk, str], IPositionsFile] | None = None
    """Where positions are kept, by disk and the queue's directory. None: in a file of their own."""

    ahead_s: float | None = None
    """Seconds before their time that resting entries are loaded when their piece is read anyway, while there is room.
    None: `AHEAD_S`."""


DEFAULT_CHOICES = LogChoices()
