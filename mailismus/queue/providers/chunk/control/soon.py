"""Soon: a call that several ask for, made once, at the earliest of the times that were asked for."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime


class Soon:
    """One such call."""

    def __init__(self, reactor: IReactorTime, call: Callable[[], None]) -> None:
        self._reactor, self._call = reactor, call
        self._timer: IDelayedCall | None = None

    def within(self, delay_s: float) -> None:
        """Call after this time at the latest."""
        if self._timer is not None:
            if self._timer.getTime() <= self._reactor.seconds() + delay_s:
                return
            self._timer.cancel()
        self._timer = self._reactor.callLater(delay_s, self._run)

    def _run(self) -> None:
        self._timer = None
        self._call()
