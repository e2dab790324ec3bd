"""Learning: a start reads every piece of which nothing is known, beside all other work and at half speed.

outlines of each piece, in the order of the log -> takes that wait look again -> all is known: segments may be freed
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.queue.providers.log.control.giving_way import give_way
from mailismus.queue.providers.log.control.piece_reading import EnvelopeChoice, PieceReading
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope


class Learning:
    """Learns what rests of one queue. `now`: UTC seconds."""

    _log = Logger()

    def __init__(self, resting: Resting, reading: PieceReading, reactor: IReactorTime, now: Callable[[], float]) -> None:
        self._resting, self._reading, self._reactor, self._now = resting, reading, reactor, now
        self._is_stopped = False
        self._is_learning = False
        self._waiting: list[Deferred[None]] = []
        self._timer: IDelayedCall | None = None
        self._on_news: Callable[[], None] = _nothing
        self._on_learnt_once: Callable[[], object] = _nothing

    def listen(self, on_news: Callable[[], None]) -> None:
        """Call `on_news` whenever more is known."""
        self._on_news = on_news

    def start(self, on_learnt: Callable[[], object]) -> None:
        """Begin to learn what rests (`learn`), in a turn of its own. Call `on_learnt` when that has ended, at once if all is
        known."""
        if self._resting.is_known:
            on_learnt()
        else:
            self._on_learnt_once = on_learnt
            self._timer = self._reactor.callLater(0, self.learn)

    def learn(self) -> Deferred[None]:
        """Read, beside all other work, every piece of which nothing is known. Fires when that has ended."""
        ended: Deferred[None] = Deferred()
        self._waiting.append(ended)
        if not self._is_learning:
            self._is_learning = True
            learnt = Deferred.fromCoroutine(self._learn_all())
            learnt.addErrback(lambda failure: self._log.failure("Reading the log failed", failure))
            learnt.addCallback(self._on_learnt)
        return ended

    @property
    def is_to_be_learnt(self) -> bool:
        """Whether what rests is being learnt, or soon will be."""
        return self._is_learning or (self._timer is not None and self._timer.active())

    def is_busy(self) -> bool:
        """Whether it is being learnt."""
        return self._is_learning

    def stop(self) -> None:
        """Read no further."""
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    async def _learn_all(self) -> None:
        for piece in self._resting.all():
            if self._is_stopped:
                return
            if not piece.is_known and self._resting.has(piece):
                began_s = self._reactor.seconds()
                if not await self._reading.outline(piece):
                    await self._reading.read(piece, _leave, self._now())
                self._on_news()
                await give_way(self._reactor, began_s)

    def _on_learnt(self, _: object) -> None:
        self._is_learning = False
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            ended.callback(None)
        self._on_news()
        on_learnt, self._on_learnt_once = self._on_learnt_once, _nothing
        on_learnt()


def _nothing() -> None:
    """Nobody listens."""


def _leave(one: FoundEnvelope, due_at: float) -> EnvelopeChoice:
    """Nothing is loaded."""
    return EnvelopeChoice.LEAVE
