"""Ids of shares: they ascend with time, so that a partition lists them in the order in which they came. Pure.

They have the form of UUID version 7: milliseconds, then a number that ascends within one, then chance.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

_LOWEST_VARIANT = 0x8000_0000_0000_0000
_CHANCE_BITS = 62


class ShareIds:
    """Makes the ids of one server. `now`: UTC seconds; `chance`: random bits, so many. Ids ascend even where the clock goes
    back."""

    def __init__(self, now: Callable[[], float], chance: Callable[[int], int]) -> None:
        self._now, self._chance = now, chance
        self._last = 0
        """Milliseconds, and below them 12 bits of a counter."""

    def __call__(self) -> UUID:
        """The next one."""
        self._last = max(int(self._now() * 1000) << 12, self._last + 1)
        upper = ((self._last >> 12) << 16) | 0x7000 | (self._last & 0xFFF)
        return UUID(int=(upper << 64) | _LOWEST_VARIANT | self._chance(_CHANCE_BITS))
