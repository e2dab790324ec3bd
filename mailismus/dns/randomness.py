"""RandomSource, as it is handed in."""

from __future__ import annotations

from typing import Protocol


class RandomSource(Protocol):
    """What is asked of a `random.Random`."""

    def randrange(self, stop: int, /) -> int:
        """A whole number from 0 to `stop` - 1."""

    def random(self) -> float:
        """A number from 0 to 1, that one excluded."""
