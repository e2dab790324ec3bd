"""The clients of the real services keep what the stores promise. Skipped, with the reason, where a service is not up."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from typing import TypeVar

import pytest
from twisted.internet.defer import Deferred

from mailismus.disk.worker import ThreadPool
from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.cassandra.client import CassandraRows
from mailismus.queue.providers.distributed.stores.cassandra.session import CassandraAccess
from mailismus.queue.providers.distributed.stores.failure import NotDone, StoreFailure, Unanswered
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
from tests.distributed.conformance.objects import Body, ObjectsContract
from tests.distributed.conformance.rows import ENTRIES, LEASES, MARKS, RowsContract, put
from tests.distributed.services import do, packages, service
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


@pytest.fixture
def _well() -> Iterator[None]:
    """The services are well again behind a test that harms them."""
    yield
    for name in ("rabbitmq", "cassandra", "swift"):
        do("restart", name)


def failure_of(deferred: Deferred[T]) -> StoreFailure:
    with pytest.raises(StoreFailure) as raised:
        wait_for(deferred)
    return raised.value


@pytest.mark.usefixtures("_well")
def test_a_service_that_is_killed_frozen_or_full_fails_as_it_should() -> None:
    rabbit, cassandra, swift = RabbitHarness(), CassandraHarness(), SwiftHarness("s3")
    broker, rows, objects = rabbit.client(), cassandra.client(), swift.client()
    queue = rabbit.name("work")
    wait_for(broker.declare([queue]))
    wait_for(rows.make([ENTRIES, MARKS, LEASES]))
    wait_for(rows.write([put(1, recipient=b"a")]))
    wait_for(objects.make())
    do("restart", "rabbitmq")  # a quorum queue that was made a moment ago does not survive a kill

    for name in ("rabbitmq", "cassandra", "swift"):
        do("freeze", name)
    assert isinstance(failure_of(rows.write([put(2, recipient=b"b")])), Unanswered)
    assert isinstance(failure_of(objects.put("mail/a", Body(b"a"))), Unanswered)
    failure_of(broker.publish(queue, b"1"))
    for name in ("rabbitmq", "cassandra", "swift"):
        do("thaw", name)
    turn_for(2)
    wait_for(rows.write([put(2, recipient=b"b")]))
    wait_for(objects.put("mail/a", Body(b"a")))
    wait_for(broker.publish(queue, b"1"))

    do("fill", "rabbitmq")
    do("fill", "swift")
    turn_for(1)
    failure_of(broker.publish(queue, b"2"))
    full = failure_of(broker.publish(queue, b"2"))
    assert isinstance(full, NotDone)
    assert full.is_full
    failure_of(objects.put("mail/b", Body(b"b")))
    do("thaw", "rabbitmq")
    do("thaw", "swift")
    turn_for(2)
    wait_for(broker.publish(queue, b"2"))
    wait_for(objects.put("mail/b", Body(b"b")))

    for name in ("rabbitmq", "cassandra", "swift"):
        do("kill", name)
    turn_for(1)
    failure_of(rows.write([put(3, recipient=b"c")]))
    failure_of(objects.put("mail/c", Body(b"c")))
    failure_of(broker.publish(queue, b"3"))
    for name in ("rabbitmq", "cassandra", "swift"):
        do("restart", name)
    turn_for(3)
    wait_for(rows.write([put(3, recipient=b"c")]))
    assert len(wait_for(rows.rows(ENTRIES, ("incoming", 1_789_999_200.0)))) == 3
    wait_for(objects.put("mail/c", Body(b"c")))
    wait_for(broker.publish(queue, b"3"))
    assert wait_for(broker.depth(queue)) >= 3
    for harness in (rabbit, cassandra, swift):
        harness.close()


def _typed(broker: RabbitBroker, rows: CassandraRows, objects: HttpObjects) -> tuple[IBroker, IRows, IObjects]:
    """The clients are of the interfaces."""
    return broker, rows, objects
