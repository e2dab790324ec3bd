"""The clients of a real Swift, by S3 and by its own API, keep what the objects promise.

Each test is skipped, with the reason, where the service is not up.
"""

from __future__ import annotations

import time

import pytest

from mailismus.queue.providers.distributed.stores.http.agent import HttpAgent
from mailismus.queue.providers.distributed.stores.http.s3 import S3Dialect
from mailismus.queue.providers.distributed.stores.http.sigv4 import SigningKey
from mailismus.queue.providers.distributed.stores.http.store import HttpObjects
from mailismus.queue.providers.distributed.stores.http.swift import SwiftAccount, SwiftDialect
from mailismus.queue.providers.distributed.stores.objects import IObjects
from tests.distributed.conformance.objects import ObjectsContract
from tests.distributed.services import RealHarness, service, unique
from tests.distributed.waiting import reactor

pytestmark = pytest.mark.usefixtures("_name_threads")


class SwiftHarness(RealHarness):
    """A running Swift, by one of its two interfaces."""

    def __init__(self, kind: str) -> None:
        self._facts, self._kind, self._bucket = service("swift"), kind, unique("bucket")
        self._clients: list[HttpObjects] = []

    def client(self) -> HttpObjects:
        facts, agent = self._facts, HttpAgent(reactor, self._kind)
        dialect: S3Dialect | SwiftDialect
        if self._kind == "s3":
            key = SigningKey(facts["username"], facts["password"], facts["region"])
            dialect = S3Dialect(facts["url"], self._bucket, key, time.time)
        else:
            account = SwiftAccount(facts["username"], facts["password"], facts["auth"])
            dialect = SwiftDialect(agent, facts["url"], self._bucket, account)
        client = HttpObjects(agent, dialect)
        self._clients.append(client)
        return client

    def close(self) -> None:
        janitor = self.client()
        if self.wait(janitor.is_there()):
            for key in self.wait(janitor.keys("")):
                self.wait(janitor.remove(key))
        for client in self._clients:
            self.wait(client.close())


class TestS3(ObjectsContract):
    @pytest.fixture
    def harness(self) -> SwiftHarness:
        return SwiftHarness("s3")


class TestSwift(ObjectsContract):
    compares_sums = False

    @pytest.fixture
    def harness(self) -> SwiftHarness:
        return SwiftHarness("swift")


def _typed(objects: HttpObjects) -> IObjects:
    """The clients are of the interface."""
    return objects
