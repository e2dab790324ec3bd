"""The client of a real Cassandra keeps what the rows promise.

Skipped as a whole, with the reason, where the service is not up.
"""

from __future__ import annotations

import pytest

from mailismus.disk.worker import ThreadPool
from mailismus.queue.providers.distributed.stores.cassandra.client import CassandraRows
from mailismus.queue.providers.distributed.stores.cassandra.session import CassandraAccess
from mailismus.queue.providers.distributed.stores.rows import IRows
from tests.distributed.conformance.rows import RowsContract
from tests.distributed.services import RealHarness, host_of, packages, service, unique
from tests.distributed.waiting import reactor

service("cassandra")
packages()
pytestmark = pytest.mark.usefixtures("_name_threads")


class CassandraHarness(RealHarness):
    """A running Cassandra."""

    def __init__(self) -> None:
        facts = service("cassandra")
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


class TestCassandra(RowsContract):
    @pytest.fixture
    def harness(self) -> CassandraHarness:
        return CassandraHarness()


def _typed(rows: CassandraRows) -> IRows:
    """The client is of the interface."""
    return rows
