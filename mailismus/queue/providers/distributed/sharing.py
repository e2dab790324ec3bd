"""`ISharing` of one server: agreements and parts of limits by compare and set, news by a fan-out, records in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.providers.distributed.format.tables import DESTINATIONS
from mailismus.queue.providers.distributed.identity.agreements import agree, agreed
from mailismus.queue.providers.distributed.identity.epochs import next_number
from mailismus.queue.providers.distributed.limits.keeping import LimitKeeping
from mailismus.queue.providers.distributed.news import ServerNews
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.rows import IRows, Put, Write
from mailismus.queue.sharing import IHand


class ServerSharing:
    """What this server shares with others."""

    _log = Logger()

    def __init__(self, rows: IRows, news: ServerNews, limits: LimitKeeping, hand: IHand) -> None:
        self._rows, self._news, self._hand = rows, news, hand
        self.limits = limits
        self._is_closed = False

    async def close(self) -> None:
        """Give parts of limits back; hear and tell nothing more. Never fails."""
        await self.limits.close()
        self._news.close()
        self._is_closed = True

    # the hand

    def has(self, queue_id: QueueId) -> bool:
        return self._hand.has(queue_id)

    # agreements

    def agree(self, name: str, value: bytes) -> Deferred[bytes]:
        return Deferred.fromCoroutine(self._agree(name, value))

    async def _agree(self, name: str, value: bytes) -> bytes:
        try:
            return await agree(self._rows, name, value)
        except StoreFailure as failure:
            raise Unavailable(str(failure)) from failure

    def agreed(self, name: str) -> Deferred[bytes | None]:
        return Deferred.fromCoroutine(self._agreed(name))

    async def _agreed(self, name: str) -> bytes | None:
        try:
            return await agreed(self._rows, name)
        except StoreFailure as failure:
            raise Unavailable(str(failure)) from failure

    def next_number(self, name: str, above: int) -> Deferred[int]:
        return Deferred.fromCoroutine(self._next_number(name, above))

    async def _next_number(self, name: str, above: int) -> int:
        try:
            return await next_number(self._rows, name, above)
        except StoreFailure as failure:
            raise Unavailable(str(failure)) from failure

    # news

    def tell(self, news: bytes) -> None:
        self._news.tell(news)

    def listen(self, on_news: Callable[[bytes], None]) -> None:
        self._news.listen(on_news)

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
            await self._rows.write([put])  # each a partition of its own

    def kept(self) -> Deferred[Mapping[str, bytes]]:
        return Deferred.fromCoroutine(self._kept())

    async def _kept(self) -> Mapping[str, bytes]:
        try:
            rows = await self._rows.all_rows(DESTINATIONS)
        except StoreFailure as failure:
            raise Unavailable(str(failure)) from failure
        return {str(row["host"]): record for row in rows if isinstance(record := row["record"], bytes)}

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("what servers share can't be told", failure)
