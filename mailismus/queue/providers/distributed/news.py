"""What servers tell each other, by a fan-out of the broker. Nothing is promised: neither that it arrives, nor how often."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.format.tables import NEWS
from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.failure import StoreFailure

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
"""Between two tries to listen: what waits is asked about by news as soon as the broker is back."""


class ServerNews:
    """What this server tells and hears. Nothing is listened to before somebody wants to hear."""

    _log = Logger()

    def __init__(self, broker: IBroker, reactor: IReactorTime) -> None:
        self._broker, self._reactor = broker, reactor
        self._listeners: list[Callable[[bytes], None]] = []
        self._is_closed = False

    def close(self) -> None:
        """Hear and tell nothing more."""
        self._is_closed = True

    def tell(self, news: bytes) -> None:
        """Tell all servers that run, this one too."""
        if not self._is_closed:
            self._broker.tell(NEWS, news).addErrback(self._failed)

    def listen(self, on_news: Callable[[bytes], None]) -> None:
        """Call this with what is told."""
        self._listeners.append(on_news)
        if len(self._listeners) == 1:
            Deferred.fromCoroutine(self._listen()).addErrback(self._failed)

    async def _listen(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_closed:
            lost: Deferred[None] = Deferred()
            try:
                await self._broker.listen(NEWS, self._hear, lambda lost=lost: lost.callback(None))  # type: ignore[misc]
                pause_s = FIRST_PAUSE_S
                await lost
            except StoreFailure:
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            if not self._is_closed:
                await deferLater(self._reactor, pause_s)

    def _hear(self, news: bytes) -> None:
        for on_news in self._listeners if not self._is_closed else ():
            on_news(news)

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("what servers share can't be told", failure)
