"""Clean stop: waits for what was asked for. It writes nothing that the next start uses: crash-only.

*Rules*: a stop waits for a slow disk, but not for a log that can't be written.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.journal.commit import GroupCommit
from mailismus.journal.pressure import Pressure

GIVE_UP_S = 5.0
"""Seconds that a close waits for a log that can't be written: entries settled meanwhile may be delivered twice."""


class LogClosing:
    """The clean stop of one queue. `released` is called last."""

    _log = Logger()

    def __init__(
        self,
        commits: GroupCommit,
        pressure: Pressure,
        reactor: IReactorTime,
        released: Callable[[], None],
    ) -> None:
        self._commits, self._pressure = commits, pressure
        self._reactor, self._released = reactor, released
        self._idle: Deferred[None] | None = None

    def begin(self) -> Deferred[None]:
        """Begin the stop. Fires when every item is durable or failed."""
        self._idle = Deferred()
        self._commits.hurry()
        # In a turn of its own: a barrier may have failed in this one, and the items of its rewrite are not appended yet.
        self._reactor.callLater(0, self.check)
        self._reactor.callLater(GIVE_UP_S, self._give_up)
        return self._idle.addCallback(lambda _: self._released())

    def check(self) -> None:
        """Finish if no batch and no message file is under way. Called when one has ended."""
        if self._idle is None or not self._commits.is_idle or self._pressure.finishing:
            return
        idle, self._idle = self._idle, None
        idle.callback(None)

    def _give_up(self) -> None:
        """Go on waiting for a slow disk, but not for a log that can't be written."""
        if self._idle is None:
            return
        if self._commits.trouble is None:
            self._reactor.callLater(GIVE_UP_S, self._give_up)
            return
        self._log.error("Closed while the log can't be written; what was settled last may be tried again.")
        idle, self._idle = self._idle, None
        idle.callback(None)
