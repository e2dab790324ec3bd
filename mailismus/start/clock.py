"""The clock of a server: the time of day for what it writes down, and timers that never jump."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from zope.interface import implementer


@implementer(IReactorTime)
class WallClock:
    """The reactor's timers, which never jump, and the time of day, which may."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor

    def seconds(self) -> float:
        """UTC seconds."""
        return time.time()

    # `callable` is Twisted's name for it.
    def callLater(self, delay: float, callable: Callable[..., Any], *args: object, **kw: object) -> IDelayedCall:  # noqa: A002
        """As the reactor's. Its calls have times of the reactor's clock, not of this one."""
        return self._reactor.callLater(delay, callable, *args, **kw)

    def getDelayedCalls(self) -> Sequence[IDelayedCall]:
        """As the reactor's."""
        return self._reactor.getDelayedCalls()
