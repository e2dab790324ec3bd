"""Soon: a call that several ask for, made once, at the earliest of the times that were asked for."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime


class Soon:
    """One such call."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._timer: IDelayedCall | None = None

    def within(self, delay_s: float, call: Callable[[], None]) -> None:
        """Call after this time at the latest; always with the same call."""
        if self._timer is not None:
            if self._timer.getTime() <= self._reactor.seconds() + delay_s:
                return
            self._timer.cancel()
        self._timer = self._reactor.callLater(delay_s, self._run, call)

    def _run(self, call: Callable[[], None]) -> None:
        self._timer = None
        call()
