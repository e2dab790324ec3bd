"""`HttpObjects`: the calls that S3 and Swift share. How a request looks is in a dialect."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.web.iweb import IResponse

from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.http.agent import ANSWER_S, HttpAgent, StoreRequest
from mailismus.queue.providers.distributed.stores.http.body import ReadObject, size_of
from mailismus.queue.providers.distributed.stores.objects import IBody, IObject, checked_key

T = TypeVar("T")

UNKNOWN = 401
"""The store does not know the credentials of a request (any more): it is made once again, with new ones."""
FORBIDDEN = (UNKNOWN, 403)
LOOK_AT = ": the store refuses this user: look at username, passwordfile, region and bucket of <objects>"


class IDialect(Protocol):
    """Requests of one kind of store."""

    name: str
    """Of the store, for errors."""

    async def request(
        self, method: str, key: str, query: Mapping[str, str] | None = None, body: IBody | None = None
    ) -> StoreRequest:
        """A request about an object; key empty: about the bucket. Raises `NotDone` where it must ask for a token first."""
        ...

    def forget(self) -> None:
        """The store does not know our credentials (401): the next request asks for new ones, if it can."""

    def query_of(self, prefix: str, after: str, limit: int) -> Mapping[str, str]:
        """The query of a page of keys."""

    def is_full(self, code: int, answer: bytes) -> bool:
        """Whether an answer says that there is no room, or that our quota is used up."""

    def keys_of(self, page: bytes) -> list[str]:
        """The keys of a page. Raises `ValueError`."""


class HttpObjects:
    """`IObjects` over HTTP."""

    def __init__(self, agent: HttpAgent, dialect: IDialect) -> None:
        self._agent, self._dialect = agent, dialect

    def make(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._make())

    async def _make(self) -> None:
        await self._read_only(self._done("PUT", "", ok=(200, 201, 202, 409)))
        if not await self._is_there():
            raise NotDone(self._dialect.name, "the bucket was made, and is not there")

    def is_there(self) -> Deferred[bool]:
        return Deferred.fromCoroutine(self._is_there())

    async def _is_there(self) -> bool:
        return await self._read_only(self._done("HEAD", "", ok=(200, 204, 404))) in (200, 204)

    def put(self, key: str, body: IBody) -> Deferred[None]:
        return Deferred.fromCoroutine(self._put(key, body))

    async def _put(self, key: str, body: IBody) -> None:
        await self._done("PUT", checked_key(key), body=body, ok=(200, 201))

    def remove(self, key: str) -> Deferred[None]:
        return Deferred.fromCoroutine(self._remove(key))

    async def _remove(self, key: str) -> None:
        await self._done("DELETE", checked_key(key), ok=(200, 204, 404))

    def get(self, key: str) -> Deferred[IObject | None]:
        return Deferred.fromCoroutine(self._get(key))

    async def _get(self, key: str) -> IObject | None:
        response = await self._read_only(self._asked("GET", checked_key(key)))
        if response.code == 200:
            try:
                found = ReadObject(self._dialect.name, size_of(response), ANSWER_S, self._agent.reactor)
            except ValueError as error:
                self._agent.leave(response)
                raise NotDone(self._dialect.name, str(error)) from error
            response.deliverBody(found)
            return found
        answer = await self._read_only(self._agent.read(response))
        if response.code == 404:
            if await self._is_there():
                return None
            raise NotDone(self._dialect.name, "the bucket is not there")
        raise self._refusal(response, answer, may_be_done=False)

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> Deferred[Sequence[str]]:
        return Deferred.fromCoroutine(self._keys(prefix, after, limit))

    async def _keys(self, prefix: str, after: str, limit: int) -> Sequence[str]:
        response = await self._read_only(self._asked("GET", "", self._dialect.query_of(prefix, after, limit)))
        page = await self._read_only(self._agent.read(response))
        if response.code not in (200, 204):
            raise self._refusal(response, page, may_be_done=False)
        try:
            return self._dialect.keys_of(page)
        except ValueError as error:
            raise NotDone(self._dialect.name, str(error)) from error

    def close(self) -> Deferred[None]:
        return self._agent.close()

    async def _asked(
        self, method: str, key: str, query: Mapping[str, str] | None = None, body: IBody | None = None
    ) -> IResponse:
        response = await self._agent.ask(await self._dialect.request(method, key, query, body))
        if response.code != UNKNOWN:
            return response
        await self._agent.read(response)
        self._dialect.forget()
        return await self._agent.ask(await self._dialect.request(method, key, query, body))

    async def _done(self, method: str, key: str, *, ok: tuple[int, ...], body: IBody | None = None) -> int:
        response = await self._asked(method, key, body=body)
        answer = await self._agent.read(response)
        if response.code not in ok:
            raise self._refusal(response, answer, may_be_done=True)
        return int(response.code)

    async def _read_only(self, call: Awaitable[T]) -> T:
        """What only reads, or may be repeated by an administrator, is not done where it is not answered."""
        try:
            return await call
        except Unanswered as error:
            raise NotDone(error.store, error.text) from error

    def _refusal(self, response: IResponse, answer: bytes, *, may_be_done: bool) -> NotDone | Unanswered:
        """What a reply means. The store itself may not know whether it did what it answers with 5xx, unless it has no
        room."""
        text = f"{response.code} {response.phrase.decode('ascii', 'replace')}"
        if self._dialect.is_full(response.code, answer):
            return NotDone(self._dialect.name, text, is_full=True)
        if may_be_done and response.code >= 500:
            return Unanswered(self._dialect.name, text)
        return NotDone(self._dialect.name, text + (LOOK_AT if response.code in FORBIDDEN else ""))
