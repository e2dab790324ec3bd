"""`ISharing` of one server: agreements and parts of limits by compare and set, news by a fan-out, records in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.errors import Unavailable
from mailismus.queue.providers.distributed.format.tables import AGREEMENTS, DESTINATIONS, NEWS
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.limits.keeping import LimitKeeping
from mailismus.queue.providers.distributed.stores.failure import StoreFailure, Unanswered
from mailismus.queue.providers.distributed.stores.rows import Put, Write
from mailismus.queue.providers.distributed.stores.stores import Stores

TRIES = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0


class ServerSharing:
    """What this server shares with others."""

    _log = Logger()

    def __init__(self, stores: Stores, lease: ServerLease, reactor: IReactorTime) -> None:
        self._stores, self._reactor = stores, reactor
        self._listeners: list[Callable[[bytes], None]] = []
        self._is_closed = False
        self.limits = LimitKeeping(stores.rows, lease, reactor)

    def start(self) -> None:
        """Begin to cut limits."""
        self.limits.start(self)

    async def close(self) -> None:
        """Give parts of limits back; hear and tell nothing more. Never fails."""
        await self.limits.close()
        self._is_closed = True

    # agreements

    def agree(self, name: str, value: bytes) -> Deferred[bytes]:
        return Deferred.fromCoroutine(self._agree(name, value))

    async def _agree(self, name: str, value: bytes) -> bytes:
        for _ in range(TRIES):
            known = await self._agreed(name)
            if known is not None:
                return known
            try:
                if await self._stores.rows.add(AGREEMENTS, (name,), {"value": value}) is None:
                    return value
            except Unanswered:
                continue  # the next look tells
            except StoreFailure as failure:
                raise Unavailable(str(failure)) from failure
        raise Unavailable("the database does not answer")

    def agreed(self, name: str) -> Deferred[bytes | None]:
        return Deferred.fromCoroutine(self._agreed(name))

    async def _agreed(self, name: str) -> bytes | None:
        try:
            row = await self._stores.rows.row(AGREEMENTS, (name,))
        except StoreFailure as failure:
            raise Unavailable(str(failure)) from failure
        value = None if row is None else row["value"]
        return value if isinstance(value, bytes) else None

    # news

    def tell(self, news: bytes) -> None:
        if not self._is_closed:
            self._stores.broker.tell(NEWS, news).addErrback(self._failed)

    def listen(self, on_news: Callable[[bytes], None]) -> None:
        self._listeners.append(on_news)
        if len(self._listeners) == 1:
            Deferred.fromCoroutine(self._listen()).addErrback(self._failed)

    def _hear(self, news: bytes) -> None:
        for on_news in self._listeners:
            on_news(news)

    async def _listen(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_closed:
            lost: Deferred[None] = Deferred()
            try:
                await self._stores.broker.listen(NEWS, self._hear, lambda lost=lost: lost.callback(None))  # type: ignore[misc]
                pause_s = FIRST_PAUSE_S
                await lost
            except StoreFailure:
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            if not self._is_closed:
                await deferLater(self._reactor, pause_s)

    # records

    def keep(self, records: Mapping[str, tuple[bytes, float]], for_s: float) -> None:
        puts = [
            Put(DESTINATIONS, (name,), {"record": record, "at": at}, at, max(1, int(for_s)))
            for name, (record, at) in records.items()
        ]
        if puts and not self._is_closed:
            Deferred.fromCoroutine(self._keep(puts)).addErrback(self._failed)

    async def _keep(self, puts: Sequence[Write]) -> None:
        for put in puts:
            await self._stores.rows.write([put])  # each a partition of its own

    def kept(self) -> Deferred[Mapping[str, bytes]]:
        return Deferred.fromCoroutine(self._kept())

    async def _kept(self) -> Mapping[str, bytes]:
        try:
            rows = await self._stores.rows.all_rows(DESTINATIONS)
        except StoreFailure as failure:
            raise Unavailable(str(failure)) from failure
        return {str(row["host"]): record for row in rows if isinstance(record := row["record"], bytes)}

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("what servers share can't be told", failure)
