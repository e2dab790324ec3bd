"""Signatures of requests, compared with those of the published examples, and pages of keys from hostile stores."""

from __future__ import annotations

import calendar
import hashlib
import re

import pytest

from mailismus.queue.providers.distributed.stores.http.listing import keys_of_s3, keys_of_swift
from mailismus.queue.providers.distributed.stores.http.sigv4 import SigningKey, UnsignedRequest, signed_headers

KEY = SigningKey("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
HOST = "examplebucket.s3.amazonaws.com"
AT = calendar.timegm((2013, 5, 24, 0, 0, 0))
WELCOME = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()
STORED = {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}


@pytest.mark.parametrize(
    ("request_", "signature"),
    [
        (
            UnsignedRequest("GET", HOST, "/test.txt", headers={"range": "bytes=0-9"}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            UnsignedRequest("PUT", HOST, "/test$file.text", headers=STORED, sha256=WELCOME),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            UnsignedRequest("GET", HOST, "/", {"lifecycle": ""}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            UnsignedRequest("GET", HOST, "/", {"max-keys": "2", "prefix": "J"}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
    ids=["get", "put", "lifecycle", "list"],
)
def test_a_signature_is_that_of_the_published_example(request_: UnsignedRequest, signature: str) -> None:
    headers = signed_headers(request_, KEY, AT)
    assert headers["x-amz-date"] == "20130524T000000Z"
    assert re.search(r"Signature=([0-9a-f]+)$", headers["authorization"])[1] == signature  # type: ignore[index]


def test_no_secret_is_shown() -> None:
    assert "wJalr" not in repr(KEY)


def test_keys_of_a_page() -> None:
    page = b'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>'
    page += b"<Contents><Key>mail/a</Key><Size>1</Size></Contents><Contents><Key>mail/b</Key></Contents></ListBucketResult>"
    assert keys_of_s3(page) == ["mail/a", "mail/b"]
    assert keys_of_swift(b'[{"name": "mail/a", "bytes": 1}, {"name": "mail/b"}]') == ["mail/a", "mail/b"]
    assert keys_of_swift(b"") == []


@pytest.mark.parametrize("page", [b"", b"<a>", b"\0", b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;', b"x" * 1000])
def test_a_malformed_page_of_s3_is_an_error(page: bytes) -> None:
    with pytest.raises(ValueError, match="no list"):
        keys_of_s3(page)


@pytest.mark.parametrize("page", [b"{", b"{}", b"[1]", b'[{"name": 1}]', b"\xff"])
def test_a_malformed_page_of_swift_is_an_error(page: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # json has words of its own
        keys_of_swift(page)


def test_no_file_is_read_for_a_page() -> None:
    page = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><L><Contents><Key>&x;</Key></Contents></L>'
    assert "root" not in "".join(keys_of_s3(page))
