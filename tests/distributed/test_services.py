"""The clients of the real services keep what the stores promise. Skipped, with the reason, where a service is not up."""

from __future__ import annotations

import itertools
import os
import time
from typing import TypeVar

import pytest
from twisted.internet.defer import Deferred

from mailismus.disk.worker import ThreadPool
from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.cassandra.client import CassandraRows
from mailismus.queue.providers.distributed.stores.cassandra.session import CassandraAccess
from mailismus.queue.providers.distributed.stores.http.agent import HttpAgent
from mailismus.queue.providers.distributed.stores.http.s3 import S3Dialect
from mailismus.queue.providers.distributed.stores.http.sigv4 import SigningKey
from mailismus.queue.providers.distributed.stores.http.store import HttpObjects
from mailismus.queue.providers.distributed.stores.http.swift import SwiftAccount, SwiftDialect
from mailismus.queue.providers.distributed.stores.objects import IObjects
from mailismus.queue.providers.distributed.stores.rabbitmq.client import RabbitBroker
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import RabbitAccess
from mailismus.queue.providers.distributed.stores.rows import IRows
from tests.distributed.conformance.broker import BrokerContract
from tests.distributed.conformance.objects import ObjectsContract
from tests.distributed.conformance.rows import RowsContract
from tests.distributed.services import packages, service
from tests.distributed.waiting import reactor, turn_for, wait_for

pytestmark = pytest.mark.usefixtures("_name_threads")

T = TypeVar("T")
_numbers = itertools.count()


def unique(word: str) -> str:
    """A name that no other test has, in this run or an earlier one."""
    return f"{word}-{os.getpid()}-{time.time_ns()}-{next(_numbers)}"


def host_of(facts: dict[str, str]) -> tuple[str, int]:
    host, _, port = facts["hosts"].rpartition(":")
    return host, int(port)


class _RealHarness:
    def wait(self, deferred: Deferred[T]) -> T:
        return wait_for(deferred)

    def pass_time(self, seconds: float) -> None:
        turn_for(seconds)


class RabbitHarness(_RealHarness):
    """A running RabbitMQ."""

    def __init__(self) -> None:
        facts = service("rabbitmq")
        packages()
        self._access = RabbitAccess([host_of(facts)], facts["vhost"], facts["username"], facts["password"])
        self._clients: list[RabbitBroker] = []
        self._names: list[str] = []

    def client(self) -> RabbitBroker:
        client = RabbitBroker(reactor, self._access)
        self._clients.append(client)
        return client

    def name(self, name: str) -> str:
        self._names.append(unique(name))
        return self._names[-1]

    def lose(self, client: IBroker) -> None:
        assert isinstance(client, RabbitBroker)
        client.abort()

    def close(self) -> None:
        janitor = self.client()
        for name in self._names:
            self.wait(janitor.remove(name))
        for client in self._clients:
            self.wait(client.close())


class CassandraHarness(_RealHarness):
    """A running Cassandra."""

    def __init__(self) -> None:
        facts = service("cassandra")
        packages()
        self._access = CassandraAccess([host_of(facts)], facts["datacenter"])
        self._keyspace = unique("tests").replace("-", "_")
        self._workers: list[ThreadPool] = []
        self._clients: list[CassandraRows] = []
        self.wait(self.client().make_keyspace(facts["datacenter"], 1))

    def client(self) -> CassandraRows:
        worker = ThreadPool(reactor, "cassandra", 1)
        worker.start()
        self._workers.append(worker)
        client = CassandraRows(reactor, worker, self._access, self._keyspace)
        self._clients.append(client)
        return client

    def close(self) -> None:
        self.wait(self._clients[0].remove_keyspace())
        for client in self._clients:
            self.wait(client.close())
        for worker in self._workers:
            worker.stop()


class SwiftHarness(_RealHarness):
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


class TestRabbitMq(BrokerContract):
    @pytest.fixture
    def harness(self) -> RabbitHarness:
        return RabbitHarness()


class TestCassandra(RowsContract):
    @pytest.fixture
    def harness(self) -> CassandraHarness:
        return CassandraHarness()


class TestS3(ObjectsContract):
    @pytest.fixture
    def harness(self) -> SwiftHarness:
        return SwiftHarness("s3")


class TestSwift(ObjectsContract):
    compares_sums = False

    @pytest.fixture
    def harness(self) -> SwiftHarness:
        return SwiftHarness("swift")


def _typed(broker: RabbitBroker, rows: CassandraRows, objects: HttpObjects) -> tuple[IBroker, IRows, IObjects]:
    """The clients are of the interfaces."""
    return broker, rows, objects
