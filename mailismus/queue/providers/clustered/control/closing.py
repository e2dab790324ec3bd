"""Clean stop: writes pending items and moves the entries of the memtable by checkpoints, so that the next start is short.

*Rules*: a stop waits for a slow disk, but not for a journal that can't be written.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.journal.commit import GroupCommit
from mailismus.journal.pressure import Pressure
from mailismus.queue.providers.clustered.checkpoint.run import CheckpointRunner
from mailismus.queue.providers.clustered.index.memtable import Memtable

GIVE_UP_S = 5.0
"""Seconds that a close waits for a journal that can't be written: entries settled meanwhile may be delivered twice."""


class Closing:
    """The clean stop of one queue. `released` is called last."""

    _log = Logger()

    def __init__(
        self,
        commits: GroupCommit,
        checkpoints: CheckpointRunner,
        pressure: Pressure,
        memtable: Memtable,
        reactor: IReactorTime,
        released: Callable[[], None],
    ) -> None:
        self._commits, self._checkpoints, self._pressure = commits, checkpoints, pressure
        self._memtable, self._reactor, self._released = memtable, reactor, released
        self._idle: Deferred[None] | None = None

    def begin(self) -> Deferred[None]:
        """Begin the stop. Fires when every item is durable or failed."""
        if self._commits.trouble is not None:
            return self._close()
        last = self._checkpoints.run()
        last.addCallback(lambda _: self._checkpoints.run() if self._memtable.messages else None)
        return last.addCallback(lambda _: self._close())

    def _close(self) -> Deferred[None]:
        self._checkpoints.stop()
        self._idle = Deferred()
        self._commits.hurry()
        # In a turn of its own: a barrier may have failed in this one, and the items of its rewrite are not appended yet.
        self._reactor.callLater(0, self.check)
        self._reactor.callLater(GIVE_UP_S, self._give_up)
        return self._idle.addCallback(lambda _: self._released())

    def check(self) -> None:
        """Finish if no batch and no message file is under way. Called when one has ended."""
        if self._idle is not None and self._commits.is_idle and not self._pressure.finishing:
            idle, self._idle = self._idle, None
            idle.callback(None)

    def _give_up(self) -> None:
        """Go on waiting for a slow disk, but not for a journal that can't be written."""
        if self._idle is None:
            return
        if self._commits.trouble is None:
            self._reactor.callLater(GIVE_UP_S, self._give_up)
            return
        self._log.error("Closed while the journal can't be written; what was settled last may be tried again.")
        idle, self._idle = self._idle, None
        idle.callback(None)
