"""Requests of Swift: a token is asked for first, and again when it is not known any more.

The store compares the MD5 of what arrives; the sum of the content itself is compared when the content is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import attrs

from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.http.agent import HttpAgent, StoreRequest
from mailismus.queue.providers.distributed.stores.http.fullness import is_swift_full
from mailismus.queue.providers.distributed.stores.http.listing import keys_of_swift
from mailismus.queue.providers.distributed.stores.http.sigv4 import encoded_path, encoded_query
from mailismus.queue.providers.distributed.stores.objects import IBody


@attrs.frozen
class SwiftAccount:
    """Who we are. `auth`: the path below the address where tokens are given."""

    username: str
    password: str = attrs.field(repr=False)
    auth: str = "/auth/v1.0"


@attrs.frozen
class _Token:
    url: str
    token: str = attrs.field(repr=False)


class SwiftDialect:
    """`IDialect` of Swift's own API."""

    name = "swift"

    def __init__(self, agent: HttpAgent, url: str, container: str, account: SwiftAccount) -> None:
        self._agent, self._url, self._container, self._account = agent, url.rstrip("/"), container, account
        self._token: _Token | None = None

    async def request(
        self, method: str, key: str, query: Mapping[str, str] | None = None, body: IBody | None = None
    ) -> StoreRequest:
        if self._token is None:
            self._token = await self._ask_for_token()
        path = f"/{self._container}/{key}" if key else f"/{self._container}"
        tail = f"?{encoded_query(query)}" if query else ""
        headers = {"x-auth-token": self._token.token}
        if body is not None:
            headers["etag"] = _md5(body)
        return StoreRequest(method, f"{self._token.url}{encoded_path(path)}{tail}", headers, body)

    def forget(self) -> None:
        self._token = None

    def query_of(self, prefix: str, after: str, limit: int) -> Mapping[str, str]:
        query = {"format": "json", "prefix": prefix, "limit": str(limit)}
        return {**query, "marker": after} if after else query

    def is_full(self, code: int, answer: bytes) -> bool:
        return is_swift_full(code, answer)

    def keys_of(self, page: bytes) -> list[str]:
        return keys_of_swift(page)

    async def _ask_for_token(self) -> _Token:
        account = self._account
        headers = {"x-auth-user": account.username, "x-auth-key": account.password}
        try:
            response = await self._agent.ask(StoreRequest("GET", f"{self._url}{account.auth}", headers))
            await self._agent.read(response)
        except Unanswered as error:
            raise NotDone(error.store, f"no token: {error.text}") from error
        found = [response.headers.getRawHeaders(name) or [""] for name in ("X-Storage-Url", "X-Auth-Token")]
        (address, *_), (token, *_) = found
        if response.code not in (200, 204) or not address or not token:
            raise NotDone(self.name, f"no token: {response.code}: look at username and passwordfile of <objects>")
        # The store may name itself as it sees itself: behind a balancer its own address is of no use.
        return _Token(self._url + "/" + address.partition("://")[2].partition("/")[2], token)


def _md5(body: IBody) -> str:
    """Of the whole: what Swift compares. It guards against lost bytes, not against people."""
    total = hashlib.md5(usedforsecurity=False)
    for piece in body.pieces():
        total.update(piece)
    return total.hexdigest()
