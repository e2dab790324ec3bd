"""Signatures of requests by AWS Signature Version 4, as S3 wants them (the path is encoded once). Pure."""

from __future__ import annotations

import functools
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

import attrs

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


@attrs.frozen
class SigningKey:
    """Who signs, and for which region."""

    access_key: str
    secret: str = attrs.field(repr=False)
    region: str


@attrs.frozen
class UnsignedRequest:
    """What is signed. `headers`: those that are signed, names in lower case; `host`, `x-amz-date` and
    `x-amz-content-sha256` are added."""

    method: str
    host: str
    path: str
    query: Mapping[str, str] = attrs.field(factory=dict)
    headers: Mapping[str, str] = attrs.field(factory=dict)
    sha256: str = EMPTY_SHA256


def encoded(text: str, safe: str = "-_.~") -> str:
    """Percent-encoded, as both sides must do it."""
    return quote(text, safe=safe)


def encoded_path(path: str) -> str:
    """A path, its slashes kept."""
    return encoded(path, "/-_.~")


def encoded_query(query: Mapping[str, str]) -> str:
    """A query, in the order in which it is signed."""
    return "&".join(f"{encoded(name)}={encoded(value)}" for name, value in sorted(query.items()))


def signed_headers(request: UnsignedRequest, key: SigningKey, at: float) -> dict[str, str]:
    """All headers that the request must have. `at`: UTC seconds; the store compares them with its own clock."""
    stamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {**request.headers, "host": request.host, "x-amz-date": stamp, "x-amz-content-sha256": request.sha256}
    names = sorted(headers)
    lines = [
        *(request.method, encoded_path(request.path), encoded_query(request.query)),
        *(f"{name}:{' '.join(headers[name].split())}" for name in names),
        *("", ";".join(names), request.sha256),
    ]
    scope = f"{stamp[:8]}/{key.region}/s3/aws4_request"
    canonical = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    signature = _mac(_secret_of(key.secret, scope), "\n".join([ALGORITHM, stamp, scope, canonical])).hex()
    words = f"Credential={key.access_key}/{scope},SignedHeaders={';'.join(names)},Signature={signature}"
    return {**headers, "authorization": f"{ALGORITHM} {words}"}


@functools.lru_cache(maxsize=4)
def _secret_of(secret: str, scope: str) -> bytes:
    """By which all requests of a day are signed."""
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    return key


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
