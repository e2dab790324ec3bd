"""Upkeep, once a second: messages that stay in S4 are preprocessed; directories and lock are looked for.

*Rules*: a message that is delivered within `NEW_S` is never preprocessed: it goes as it came. What stays longer moves to S5,
as many a second as go into a batch. While a directory is not where it was opened no mail is taken; outcomes are written
there, and known messages are delivered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.presence import Missing, Presence
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.chunk.control.ledger import ChunkLedger
from mailismus.queue.providers.chunk.control.work import MOST_CHANGES, ChunkWork
from mailismus.queue.providers.chunk.index.known import KnownChunk

NEW_S = 3.0
INTERVAL_S = 1.0


class ChunkUpkeep:
    """Once a second."""

    _log = Logger()

    def __init__(
        self, ledger: ChunkLedger, work: ChunkWork, presence: Presence, worker: IWorker, reactor: IReactorTime
    ) -> None:
        self._ledger, self._work, self._reactor = ledger, work, reactor
        self._presence, self._worker = presence, worker
        self._is_looking = False
        self.missing: Missing | None = None
        """What is not where it was opened. None: all is."""
        self._new: deque[tuple[float, SpoolId]] = deque()
        self._timer: IDelayedCall | None = None

    def start(self) -> None:
        """Begin."""
        self._timer = self._reactor.callLater(INTERVAL_S, self._tick)

    def stop(self) -> None:
        """Do nothing more."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def add(self, messages: Iterable[KnownChunk]) -> None:
        """These messages are in S4."""
        now = self._reactor.seconds()
        self._new.extend((now, known.message.spool_id) for known in messages)

    def run(self) -> None:
        """Preprocess all of them now."""
        while self._new:
            self._preprocess(self._new.popleft()[1])

    def _tick(self) -> None:
        self._timer = self._reactor.callLater(INTERVAL_S, self._tick)
        if not self._is_looking:
            self._is_looking = True
            self._worker.run(self._presence.check).addCallbacks(self._on_looked, self._on_failed)
        old = self._reactor.seconds() - NEW_S
        for _ in range(MOST_CHANGES):
            if not self._new or self._new[0][0] > old:
                break
            self._preprocess(self._new.popleft()[1])

    def _on_looked(self, _: None) -> None:
        self._is_looking = False
        if self.missing is not None:
            self.missing = None
            self._log.info("The queue is where it was opened again; mail is accepted.")

    def _on_failed(self, failure: Failure) -> None:
        self._is_looking = False
        error = failure.value
        if not isinstance(error, Missing):
            self._log.failure("Looking for the queue's directories failed", failure)
        else:
            if self.missing is None:
                self._log.error("No mail is accepted: {missing}.", missing=error)
            self.missing = error

    def _preprocess(self, spool_id: SpoolId) -> None:
        known = self._ledger.index.messages.get(spool_id)
        if known is not None and not known.is_preprocessed:
            self._work.preprocess(known)
