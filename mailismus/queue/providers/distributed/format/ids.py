"""Ids of shares: they ascend with time, so that a partition lists them in the order in which they came. Pure.

They have the form of UUID version 7: milliseconds, a number that ascends within one, the tag of a server's start, by
which its ids are known from others, and chance.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

_VARIANT = 0x8000_0000_0000_0000
_TAG_BITS, _CHANCE_BITS = 30, 32
_TIME_SHIFT = 80
_TAG_MASK = (1 << _TAG_BITS) - 1
CLOCKS_DIFFER_S = 120
"""Clocks of two servers, at most: one whose clock is a minute off the database's takes no mail."""


class ShareIds:
    """Makes the ids of one server, from one start to the next. `now`: UTC seconds; `chance`: so many random bits. Its ids
    ascend even where the clock goes back."""

    def __init__(self, now: Callable[[], float], chance: Callable[[int], int]) -> None:
        self._now, self._chance = now, chance
        self._tag = chance(_TAG_BITS)
        self._last = 0
        """Milliseconds, and below them 12 bits of a counter."""

    def __call__(self) -> UUID:
        """The next one."""
        self._last = max(int(self._now() * 1000) << 12, self._last + 1)
        upper = ((self._last >> 12) << 16) | 0x7000 | (self._last & 0xFFF)
        return UUID(int=(upper << 64) | _VARIANT | (self._tag << _CHANCE_BITS) | self._chance(_CHANCE_BITS))

    def is_made_after(self, name: UUID, other: UUID) -> bool:
        """Whether an id was made by this server after another one of its own. Clocks of others, and that of the time before
        its start, tell nothing."""
        return self.is_own(name) and name.int > other.int

    def is_surely_after(self, name: UUID, other: UUID) -> bool:
        """Whether an id was made after another one of this server's own, by whatever server, however their clocks differ."""
        return self.is_made_after(name, other) or _made_at_ms(name) > _made_at_ms(other) + CLOCKS_DIFFER_S * 1000

    def is_own(self, name: UUID) -> bool:
        """Whether an id was made by this server, since its start."""
        return (name.int >> _CHANCE_BITS) & _TAG_MASK == self._tag


def made_at(name: UUID) -> float:
    """When an id was made, by the clock of its server: UTC seconds."""
    return _made_at_ms(name) / 1000


def _made_at_ms(name: UUID) -> int:
    return name.int >> _TIME_SHIFT
