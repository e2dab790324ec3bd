"""Randomness: the interface of a random source."""

from __future__ import annotations

from typing import Protocol


class RandomSource(Protocol):
    """A source of random numbers, such as `random.Random`."""

    def randrange(self, stop: int, /) -> int:
        """A whole number from 0 to `stop` - 1."""

    def random(self) -> float:
        """A number from 0 (included) to 1 (excluded)."""
