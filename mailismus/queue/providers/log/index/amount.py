"""Amounts: what a count must know of entries that rest, without reading them. Pure.

A message that came with one recipient is one entry in one place, so its numbers can be added. Of a message with several
recipients other entries may lie elsewhere: it is counted by its id, which no amount keeps.
"""

from __future__ import annotations

from typing import NamedTuple


class RestAmount(NamedTuple):
    """Entries of one area. `lone`: those of messages that came with one recipient; `lone_bytes`: of their contents."""

    entries: int = 0
    lone: int = 0
    lone_bytes: int = 0

    @staticmethod
    def of(entries: int, recipients: int, stored_bytes: int) -> RestAmount:
        """Return the amount of so many entries of a message that came with so many recipients."""
        return RestAmount(entries, entries, entries * stored_bytes) if recipients == 1 else RestAmount(entries)

    @property
    def is_lone(self) -> bool:
        """Whether it says all that a count must know."""
        return self.lone == self.entries

    def plus(self, other: RestAmount) -> RestAmount:
        """Return the sum."""
        return RestAmount(self.entries + other.entries, self.lone + other.lone, self.lone_bytes + other.lone_bytes)

    def minus(self, other: RestAmount) -> RestAmount:
        """Return the difference."""
        return RestAmount(self.entries - other.entries, self.lone - other.lone, self.lone_bytes - other.lone_bytes)


NOTHING = RestAmount()
