"""Limits that hold over all servers of a shared queue: each server has a part of each. Protocols. Pure.

    used here -> a part is asked for -> granted -> more is wanted, or others want it -> it grows, or shrinks -> given back

*Guaranteed*: the parts of all servers together are never more than the limit, as long as all have the same. What is in use
is not given back. A server that may have lost its lease may use nothing.
*Not guaranteed*: that there is a part at the first question: it is asked for, and comes later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ILimitUse(Protocol):
    """The use of one limit on this server."""

    @property
    def name(self) -> str:
        """Of the limit, the same on all servers."""

    @property
    def lasts_s(self) -> float:
        """For how long a use counts behind its end: 0 of connections, a minute of a rate."""

    @property
    def is_even(self) -> bool:
        """Whether what lasts was spread evenly over that time."""

    def used(self) -> int:
        """How much is in use now."""


class ILimitPart(Protocol):
    """A part of one limit. All of it is answered from memory."""

    @property
    def others(self) -> int:
        """How much other servers have, as of the last look."""

    def ask(self, limit: int) -> int:
        """How much of the whole this server may use now. It is in use here."""

    def want(self) -> None:
        """More would be used."""

    def allowed(self) -> int:
        """As `ask`, without a use of it."""


class ILimits(Protocol):
    """The limits, as one server has them."""

    @property
    def servers(self) -> int:
        """Servers that run, as of the last look; at least 1."""

    def part(self, use: ILimitUse) -> ILimitPart:
        """The part for this use."""

    def listen(self, on_change: Callable[[], None]) -> None:
        """Call this when a part has changed."""
