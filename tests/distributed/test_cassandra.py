"""The client of a real Cassandra keeps what the rows promise.

Each test is skipped, with the reason, where the service is not up.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.internet.defer import Deferred

from mailismus.disk.worker import ThreadPool
from mailismus.queue.providers.distributed.stores.cassandra.client import CassandraRows
from mailismus.queue.providers.distributed.stores.cassandra.session import CassandraAccess, CassandraSession
from mailismus.queue.providers.distributed.stores.cassandra.statements import full_name
from mailismus.queue.providers.distributed.stores.rows import IRows
from tests.distributed.conformance.rows import ENTRIES, LEASES, MARKS, RowsContract
from tests.distributed.services import RealHarness, host_of, packages, service, unique
from tests.distributed.waiting import reactor, wait_for

pytestmark = pytest.mark.usefixtures("_name_threads")


class Keyspace:
    """Of all tests of this module: to make one takes seconds. It is emptied behind each."""

    def __init__(self) -> None:
        facts = service("cassandra")
        packages()
        self.access = CassandraAccess([host_of(facts)], facts["datacenter"], facts["username"], facts["password"])
        self.name = unique("tests").replace("-", "_")
        self._worker = ThreadPool(reactor, "cassandra", 1)
        self._worker.start()
        self._rows = CassandraRows(reactor, self._worker, self.access, self.name)
        self._session = CassandraSession(reactor, self._worker, self.access)
        wait_for(self._rows.make_keyspace(facts["datacenter"], 1))

    def empty(self) -> None:
        """Remove all rows."""
        for table in (ENTRIES, MARKS, LEASES):
            wait_for(Deferred.fromCoroutine(self._session.run(f"TRUNCATE {full_name(self.name, table.name)}")))

    def close(self) -> None:
        """Remove it."""
        wait_for(self._rows.remove_keyspace())
        wait_for(self._rows.close())
        wait_for(Deferred.fromCoroutine(self._session.close()))
        self._worker.stop()


@pytest.fixture(scope="module")
def keyspace(_name_threads: None) -> Iterator[Keyspace]:
    keyspace = Keyspace()
    yield keyspace
    keyspace.close()


class CassandraHarness(RealHarness):
    """A running Cassandra."""

    def __init__(self, keyspace: Keyspace) -> None:
        service("cassandra")
        self._keyspace = keyspace
        self._workers: list[ThreadPool] = []
        self._clients: list[CassandraRows] = []

    def client(self) -> CassandraRows:
        worker = ThreadPool(reactor, "cassandra", 1)
        worker.start()
        self._workers.append(worker)
        client = CassandraRows(reactor, worker, self._keyspace.access, self._keyspace.name)
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            self.wait(client.close())
        for worker in self._workers:
            worker.stop()
        self._keyspace.empty()


class TestCassandra(RowsContract):
    @pytest.fixture
    def harness(self, keyspace: Keyspace) -> CassandraHarness:
        return CassandraHarness(keyspace)


def _typed(rows: CassandraRows) -> IRows:
    """The client is of the interface."""
    return rows
