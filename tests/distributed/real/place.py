"""What the tests of a module share in the services: tables, queues, a bucket, and clients of the database and the bucket.

Where the connections to the services are to be cut off, they go through fronts in this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.defer import Deferred

from mailismus.disk.worker import ThreadPool
from mailismus.queue.providers.distributed.format.tables import TABLES
from mailismus.queue.providers.distributed.setup import ALL_QUEUES, set_up
from mailismus.queue.providers.distributed.stores.cassandra.client import CassandraRows
from mailismus.queue.providers.distributed.stores.cassandra.session import CassandraAccess
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.http.agent import HttpAgent
from mailismus.queue.providers.distributed.stores.http.s3 import S3Dialect
from mailismus.queue.providers.distributed.stores.http.sigv4 import SigningKey
from mailismus.queue.providers.distributed.stores.http.store import HttpObjects
from mailismus.queue.providers.distributed.stores.http.swift import SwiftAccount, SwiftDialect
from mailismus.queue.providers.distributed.stores.rabbitmq.client import RabbitBroker
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import RabbitAccess
from mailismus.queue.providers.distributed.stores.stores import Stores
from tests.distributed.real.own import Own, OwnBroker
from tests.distributed.real.wire import Wire
from tests.distributed.services import host_of, packages, service, unique
from tests.distributed.waiting import PATIENCE_S, reactor, turn_for, wait_for
from tests.services.front import Front

Facts = Mapping[str, Any]
NAMES = ("rabbitmq", "cassandra", "swift")
LOOK_S = 0.1


class Cuts:
    """Fronts before the three services, which can be closed and opened again."""

    def __init__(self, *ports: int) -> None:
        self._fronts = [Front(reactor, port) for port in ports]
        self.ports = [front.open() for front in self._fronts]
        self.are_cut = False

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self.are_cut = True
        for front in self._fronts:
            front.close()

    def mend(self) -> None:
        """Connect again."""
        self.are_cut = False
        for front in self._fronts:
            front.open()


def objects_of(facts: Facts, port: int, bucket: str, kind: str) -> HttpObjects:
    """A client of a bucket, by one of the two interfaces of Swift."""
    agent, url = HttpAgent(reactor, kind), f"http://127.0.0.1:{port}"
    if kind == "swift":
        account = SwiftAccount(facts["username"], facts["password"], facts["auth"])
        return HttpObjects(agent, SwiftDialect(agent, url, bucket, account))
    key = SigningKey(facts["username"], facts["password"], facts["region"])
    return HttpObjects(agent, S3Dialect(url, bucket, key, time.time))


class RealPlace:
    """Tables, queues and a bucket in the running services. Skips the test that runs where one is not up."""

    def __init__(self, kind: str = "s3", *, is_cuttable: bool = False) -> None:
        rabbitmq, cassandra, swift = (service(name) for name in NAMES)
        packages()
        ports = [host_of(rabbitmq)[1], host_of(cassandra)[1], int(swift["url"].rpartition(":")[2])]
        self.cuts = Cuts(*ports) if is_cuttable else None
        if self.cuts is not None:
            ports = self.cuts.ports
        self._rabbitmq = RabbitAccess(
            [("127.0.0.1", ports[0])], rabbitmq["vhost"], rabbitmq["username"], rabbitmq["password"]
        )
        self._worker = ThreadPool(reactor, "cassandra", 2)
        self._worker.start()
        login = cassandra["username"], cassandra["password"]
        access = CassandraAccess([("127.0.0.1", ports[1])], cassandra["datacenter"], *login)
        self.keyspace = unique("queue").replace("-", "_")
        self.rows = CassandraRows(reactor, self._worker, access, self.keyspace)
        self.bucket = unique("queue")
        self.objects = objects_of(swift, ports[2], self.bucket, kind)
        self.queues = f"{unique('queue')}."
        """How the names of its queues begin: two who consume one queue take each other's messages."""
        wait_for(self.rows.make_keyspace(cassandra["datacenter"], 1))
        broker = self.broker()
        ours = OwnBroker(Own("none", time.time), Wire(), broker, self.queues)
        wait_for(Deferred.fromCoroutine(set_up(Stores(ours, self.rows, self.objects))))
        wait_for(broker.close())

    def check(self) -> None:
        """Skip the test that runs where a service has ended meanwhile."""
        for name in NAMES:
            service(name)

    def broker(self) -> RabbitBroker:
        """A client of the broker, with connections of its own."""
        return RabbitBroker(reactor, self._rabbitmq)

    def mend(self) -> None:
        """Connect again, where it is cut off, and wait until all three services answer."""
        if self.cuts is None or not self.cuts.are_cut:
            return
        self.cuts.mend()
        broker, end = self.broker(), time.monotonic() + PATIENCE_S
        calls: tuple[Callable[[], Deferred[Any]], ...] = (
            lambda: self.rows.missing(TABLES),
            self.objects.is_there,
            lambda: broker.missing([self.queues]),
        )
        for call in calls:
            while not _is_answered(call()):
                assert time.monotonic() < end, f"the services are not well within {PATIENCE_S:g} s"
                turn_for(LOOK_S)
        wait_for(broker.close())

    def close(self) -> None:
        """Remove tables and queues, and end all connections. Objects stay, until the services end."""
        broker = self.broker()
        for queue in ALL_QUEUES:
            wait_for(broker.remove(self.queues + queue))
        wait_for(broker.close())
        wait_for(self.rows.remove_keyspace())
        wait_for(self.rows.close())
        wait_for(self.objects.close())
        self._worker.stop()
        if self.cuts is not None:
            self.cuts.cut()


def _is_answered(asked: Deferred[Any]) -> bool:
    try:
        wait_for(asked)
    except StoreFailure:
        return False
    return True
