"""Requests of S3, addressed by path: each is signed with the sum of its body, which the store compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mailismus.queue.providers.distributed.stores.http.agent import StoreRequest
from mailismus.queue.providers.distributed.stores.http.fullness import is_s3_full
from mailismus.queue.providers.distributed.stores.http.listing import keys_of_s3
from mailismus.queue.providers.distributed.stores.http.sigv4 import (
    EMPTY_SHA256,
    SigningKey,
    UnsignedRequest,
    encoded_path,
    encoded_query,
    signed_headers,
)
from mailismus.queue.providers.distributed.stores.objects import IBody


class S3Dialect:
    """`IDialect` of S3. `url`: scheme, host and port; `now`: UTC seconds."""

    name = "s3"

    def __init__(self, url: str, bucket: str, key: SigningKey, now: Callable[[], float]) -> None:
        self._url, self._bucket, self._key, self._now = url.rstrip("/"), bucket, key, now
        self._host = self._url.partition("://")[2]

    async def request(
        self, method: str, key: str, query: Mapping[str, str] | None = None, body: IBody | None = None
    ) -> StoreRequest:
        path = f"/{self._bucket}/{key}" if key else f"/{self._bucket}"
        sha256 = EMPTY_SHA256 if body is None else body.sha256.hex()
        unsigned = UnsignedRequest(method, self._host, path, query or {}, {}, sha256)
        tail = f"?{encoded_query(query)}" if query else ""
        headers = signed_headers(unsigned, self._key, self._now())
        return StoreRequest(method, f"{self._url}{encoded_path(path)}{tail}", headers, body)

    def forget(self) -> None:
        """Nothing is kept: each request is signed anew."""

    def query_of(self, prefix: str, after: str, limit: int) -> Mapping[str, str]:
        query = {"list-type": "2", "prefix": prefix, "max-keys": str(limit)}
        return {**query, "start-after": after} if after else query

    def is_full(self, code: int, answer: bytes) -> bool:
        return is_s3_full(code, answer)

    def keys_of(self, page: bytes) -> list[str]:
        return keys_of_s3(page)
