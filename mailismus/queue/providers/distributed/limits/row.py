"""The row of one limit: who has how much of it, and what was used by servers that are gone. Pure.

    {"v":7,"parts":{"12":[10,1],"15":[10,0]},"spent":[[30,1790000000.0,1]]}

`v` rises with each change: a write that comes late finds another row than it was made for. `parts`, by epochs: the part,
and whether more is wanted. `spent`: how much, until when it counts (the database's clock), and whether it was spread evenly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import attrs

SPAN_S = 61.0
"""In which an even use is spread, as in `deliver.limits.rate`."""
MAX_SPENT = 8
"""More are added up."""


@attrs.frozen
class Member:
    """What one server has. `wants`: whether it would use more."""

    part: int
    wants: bool = False


@attrs.frozen
class Spent:
    """What was used by a server that is gone, and counts until then."""

    units: int
    until: float
    is_even: bool = False

    def left(self, now: float) -> int:
        """How much of it counts still. Of an even use one second's worth may have come at once."""
        if now >= self.until:
            return 0
        if not self.is_even:
            return self.units
        return min(self.units, math.ceil(self.units * (self.until - now) / SPAN_S) + max(1, self.units // 60))


@attrs.frozen
class Division:
    """How a limit is cut now."""

    version: int = 0
    members: Mapping[int, Member] = attrs.field(factory=dict)
    """By their epochs."""
    spent: Sequence[Spent] = ()

    def spent_now(self, now: float) -> int:
        """What counts of servers that are gone."""
        return sum(one.left(now) for one in self.spent)

    def others(self, epoch: int) -> dict[int, Member]:
        """All but this one."""
        return {number: member for number, member in self.members.items() if number != epoch}

    def encode(self) -> bytes:
        """The cell."""
        parts = {str(epoch): [one.part, int(one.wants)] for epoch, one in sorted(self.members.items())}
        spent = [[one.units, one.until, int(one.is_even)] for one in self.spent]
        return json.dumps({"v": self.version, "parts": parts, "spent": spent}, separators=(",", ":")).encode()


def decode(cell: object) -> Division:
    """What a cell says; of what no server wrote, that nobody has anything."""
    try:
        found = json.loads(cell) if isinstance(cell, bytes) else {}
        members = {int(epoch): Member(max(0, int(part)), bool(wants)) for epoch, (part, wants) in found["parts"].items()}
        spent = tuple(Spent(max(0, int(units)), float(until), bool(even)) for units, until, even in found["spent"])
        if not all(math.isfinite(one.until) for one in spent):
            return Division()
        return Division(int(found["v"]), members, spent)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return Division()


def added(spent: Sequence[Spent], one: Spent) -> tuple[Spent, ...]:
    """These and one more; where there are many, their sum until the last of them is over."""
    found = (*spent, one) if one.units else tuple(spent)
    if len(found) <= MAX_SPENT:
        return found
    return (Spent(sum(each.units for each in found), max(each.until for each in found)),)
