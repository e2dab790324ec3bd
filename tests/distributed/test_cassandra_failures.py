"""How the database's driver fails, and what that is for who asked; what it is asked for once alone, and what tables are."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.format.tables import TABLES
from mailismus.queue.providers.distributed.stores.cassandra import statements
from mailismus.queue.providers.distributed.stores.cassandra.client import CassandraRows
from mailismus.queue.providers.distributed.stores.cassandra.refusals import why_not_connected
from mailismus.queue.providers.distributed.stores.cassandra.session import CassandraAccess, CassandraSession, failure_of
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from tests.distributed.services import packages
from tests.fakes.worker import MemoryWorker

FULL = (
    "Error from server: code=2200 [Invalid query] message="
    '"Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds failure threshold"'
)


@pytest.fixture(autouse=True)
def _packages() -> None:
    packages()


@pytest.mark.parametrize("may_be_done", [False, True])
def test_a_write_that_is_refused_for_want_of_room_says_so(*, may_be_done: bool) -> None:
    from cassandra import InvalidRequest

    failure = failure_of(InvalidRequest(FULL), may_be_done=may_be_done)
    assert isinstance(failure, NotDone)
    assert failure.is_full
    other = failure_of(InvalidRequest("unconfigured table marks"), may_be_done=may_be_done)
    assert isinstance(other, NotDone)
    assert not other.is_full


def test_a_write_without_an_answer_may_be_done_and_says_nothing_of_room() -> None:
    from cassandra import OperationTimedOut

    failure = failure_of(OperationTimedOut(), may_be_done=False)
    assert isinstance(failure, Unanswered)
    assert not failure.is_full


def test_why_no_connection_was_made_is_said_of_each_node() -> None:
    from cassandra import AuthenticationFailed, OperationTimedOut
    from cassandra.cluster import NoHostAvailable

    refused = ConnectionRefusedError(111, "Tried connecting to [('127.0.0.1', 9)]. Last error: Connection refused")
    failures = {"a:9": refused, "b:9": AuthenticationFailed("Bad credentials"), "c:9": OperationTimedOut("Timed out (5 s)")}
    error = NoHostAvailable("Unable to connect to any servers", failures)
    assert why_not_connected(error, "dc") == "a:9: Connection refused; b:9: Bad credentials; c:9: Timed out (5 s)"
    elsewhere = why_not_connected(NoHostAvailable("Unable to connect to any servers", ["192.0.2.1"]), "dc2")
    assert elsewhere.startswith("no node of datacenter dc2 at 192.0.2.1: look at <cassandra datacenter>")
    assert why_not_connected(ValueError("no  such\nthing"), "dc") == "no such thing"


class Driver:
    """A cluster, its session, prepared statements and answers in one."""

    has_more_pages = False

    def __init__(self) -> None:
        self.prepared: list[str] = []

    def connect(self) -> Driver:
        return self

    def prepare(self, statement: str) -> Driver:
        self.prepared.append(statement)
        return self

    def bind(self, values: object) -> Driver:
        return self

    def execute_async(self, statement: object, timeout: float | None) -> Driver:
        return self

    def clear_callbacks(self) -> None:
        """It keeps none."""

    def add_callbacks(self, on_page: Any, on_error: Any) -> None:
        on_page([{"number": 1}])


class Reactor(Clock):
    def callFromThread(self, call: Any, *arguments: Any) -> None:
        self.callLater(0, call, *arguments)


class Session(CassandraSession):
    def __init__(self, worker: MemoryWorker, driver: Driver) -> None:
        self.reactor, self._driver = Reactor(), driver
        super().__init__(self.reactor, worker, CassandraAccess([("localhost", 9042)]))  # type: ignore[arg-type]  # a part

    def _make_cluster(self) -> Driver:
        return self._driver


@pytest.mark.parametrize("fault", [None, OSError("it went away")])
def test_calls_at_once_share_the_preparation_of_their_statement_and_its_failure(fault: Exception | None) -> None:
    worker, driver = MemoryWorker(is_prompt=True), Driver()
    session = Session(worker, driver)
    Deferred.fromCoroutine(session.connect())
    worker.is_prompt, worker.fault = False, fault
    results: list[object] = []
    for _ in range(12):
        Deferred.fromCoroutine(session.read("SELECT", [])).addBoth(results.append)
    assert len(worker.calls) == 1
    worker.calls.pop()()
    session.reactor.advance(0)
    failed = [result for result in results if isinstance(result, Failure) and isinstance(result.value, NotDone)]
    assert len(results) == 12
    assert len(failed) == (12 if fault else 0)
    worker.is_prompt, worker.fault = True, None
    Deferred.fromCoroutine(session.read("SELECT", [])).addBoth(results.append)
    session.reactor.advance(0)
    assert results[-1] == [{"number": 1}]
    assert driver.prepared == ["SELECT"]


def test_tables_are_made_with_all_that_is_said_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    async def run(session: CassandraSession, statement: str) -> list[object]:
        made.append(statement)
        return []

    monkeypatch.setattr(CassandraSession, "run", run)
    access = CassandraAccess([("localhost", 9042)])
    rows = CassandraRows(Reactor(), MemoryWorker(is_prompt=True), access, "k")  # type: ignore[arg-type]  # a part
    rows.make(TABLES)
    grace_s = [statements.PASSING_GRACE_S if table.is_passing else statements.GRACE_S for table in TABLES]
    assert [int(text.partition("gc_grace_seconds = ")[2]) for text in made] == grace_s
