"""What object stores of several makes say where there is no room, and what that is taken for."""

from __future__ import annotations

from typing import Any, cast

import pytest
from twisted.web.http_headers import Headers

from mailismus.queue.providers.distributed.content.whole import WholeBody
from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure, Unanswered
from mailismus.queue.providers.distributed.stores.http.s3 import S3Dialect
from mailismus.queue.providers.distributed.stores.http.sigv4 import SigningKey
from mailismus.queue.providers.distributed.stores.http.store import HttpObjects, IDialect
from mailismus.queue.providers.distributed.stores.http.swift import SwiftAccount, SwiftDialect

URL = "http://127.0.0.1:8080"
S3, SWIFT = "s3", "swift"


def s3_error(code: str) -> bytes:
    return b"<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>%b</Code><Message>No.</Message></Error>" % code.encode()


SWIFT_503 = (
    b"<html><h1>Service Unavailable</h1><p>The server is currently unavailable. Please try again at a later time.</p></html>"
)


class Answer:
    """An answer to a request."""

    def __init__(self, code: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.code, self.phrase, self.body = code, b"Phrase", body
        self.headers = Headers({name: [value] for name, value in (headers or {}).items()})


class Agent:
    """`HttpAgent` of a store that gives a token, and one answer to all else."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def ask(self, request: Any) -> Answer:
        if request.url.endswith("/auth/v1.0"):
            return Answer(200, headers={"X-Storage-Url": f"{URL}/v1/AUTH_a", "X-Auth-Token": "t"})
        return self._answer

    async def read(self, response: Answer) -> bytes:
        return response.body


def failure_of(kind: str, code: int, body: bytes) -> StoreFailure:
    """What a put fails with."""
    agent = cast(Any, Agent(Answer(code, body)))
    dialect: IDialect
    if kind == S3:
        dialect = S3Dialect(URL, "bucket", SigningKey("user", "secret", "us-east-1"), lambda: 0.0)
    else:
        dialect = SwiftDialect(agent, URL, "bucket", SwiftAccount("user", "secret"))
    failures: list[BaseException] = []
    put = HttpObjects(agent, dialect).put("mail/1/a", WholeBody(b"x"))
    put.addCallbacks(lambda _: None, lambda failure: failures.append(failure.value))
    (failure,) = failures
    assert isinstance(failure, StoreFailure)
    return failure


@pytest.mark.parametrize(
    ("kind", "code", "body"),
    [
        (S3, 507, b""),
        (S3, 507, s3_error("XMinioStorageFull")),
        (S3, 403, s3_error("QuotaExceeded")),
        (S3, 400, s3_error("XMinioAdminBucketQuotaExceeded")),
        (SWIFT, 507, b""),
        (SWIFT, 413, b"Upload exceeds quota."),
        (SWIFT, 413, b"QuotaExceeded"),
    ],
)
def test_no_room_is_said_so(kind: str, code: int, body: bytes) -> None:
    failure = failure_of(kind, code, body)
    assert isinstance(failure, NotDone)
    assert failure.is_full
    assert failure.text == f"{code} Phrase"


@pytest.mark.parametrize(
    ("kind", "code", "body", "is_done_maybe"),
    [
        (S3, 503, s3_error("ServiceUnavailable"), True),
        (S3, 500, s3_error("InternalError"), True),
        (S3, 403, s3_error("AccessDenied"), False),
        (S3, 400, s3_error("EntityTooLarge"), False),
        (S3, 403, b"<Code>" + b"x" * 5000 + b"QuotaExceeded</Code>", False),
        (SWIFT, 503, SWIFT_503, True),
        (SWIFT, 413, b"Your request is too large.", False),
        (SWIFT, 403, b"quota", False),
    ],
)
def test_nothing_else_is_taken_for_it(kind: str, code: int, body: bytes, *, is_done_maybe: bool) -> None:
    failure = failure_of(kind, code, body)
    assert isinstance(failure, Unanswered if is_done_maybe else NotDone)
    assert not failure.is_full
