"""Giving way: work that nobody waits for goes at half speed, so that other work comes first."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

MOST_PAUSE_S = 0.1
"""Seconds between two steps, at most: as long as the one before took."""


async def give_way(reactor: IReactorTime, began_s: float) -> None:
    """Pause for as long as it took since then. `began_s`: reactor seconds."""
    await deferLater(reactor, min(MOST_PAUSE_S, max(0.0, reactor.seconds() - began_s)))
