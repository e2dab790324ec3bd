"""A statement is asked of another node of the database where one fails or is silent, but for what that could harm."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, cast

import attrs
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.cassandra.asking import SECOND_S, Asking, NoAnswer
from mailismus.queue.providers.distributed.stores.cassandra.session import ANSWER_S, CassandraAccess, CassandraSession
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.libraries import missing_packages

HOSTS = ["a", "b", "c"]


class Reactor(Clock):
    """The driver's thread is the test's."""

    def callFromThread(self, call: Callable[..., object], *words: object) -> None:
        call(*words)


class Future:
    """What the driver gives for a statement under way."""

    def __init__(self, host: str) -> None:
        self.attempted_hosts = [host]
        self.has_more_pages = False
        self.fetched = 0
        self.on_page: Any = None
        self.on_error: Any = None

    def add_callbacks(self, on_page: object, on_error: object) -> None:
        self.on_page, self.on_error = on_page, on_error

    def clear_callbacks(self) -> None:
        self.on_page = self.on_error = None

    def start_fetching_next_page(self) -> None:
        self.fetched += 1


@attrs.define
class Statement:
    """A prepared statement."""

    text: str

    def bind(self, values: object) -> str:
        return self.text


class Session:
    """A session of the driver, which asks `a` first."""

    def __init__(self) -> None:
        self.asked: list[Future] = []
        self.failure: Exception | None = None

    def prepare(self, statement: str) -> Statement:
        return Statement(statement)

    def execute_async(self, statement: object, timeout: float | None, host: str = "a") -> Future:
        assert timeout is None, "the driver would keep what was read until then"
        if self.failure is not None:
            raise self.failure
        self.asked.append(Future(host))
        return self.asked[-1]

    @property
    def hosts(self) -> list[str]:
        return [future.attempted_hosts[0] for future in self.asked]


@attrs.define
class Course:
    """One call under way."""

    clock: Reactor
    session: Session
    results: list[Any]


def begin(*, may_repeat: bool = True, hosts: list[str] = HOSTS, failure: Exception | None = None) -> Course:
    course = Course(Reactor(), Session(), [])
    course.session.failure = failure
    asking = Asking(cast(Any, course.clock), course.session, lambda: hosts, lambda error: isinstance(error, ValueError))
    asked = asking.ask("words", ANSWER_S, may_repeat=may_repeat)
    asked.addCallbacks(course.results.append, lambda failed: course.results.append(failed.value.errors))
    return course


def test_a_node_that_answers_is_the_only_one() -> None:
    course = begin()
    course.session.asked[0].on_page([{"n": 1}])
    assert course.results == [[{"n": 1}]]
    assert not course.clock.getDelayedCalls()
    assert course.session.hosts == ["a"]


class Row(dict[str, object]):
    """A row that can be waited for to be forgotten."""


def test_what_was_read_is_freed_with_its_reader() -> None:
    """Without a collection of garbage, which is rare in a server."""
    course = begin()
    future = course.session.asked[0]
    rows = [Row(n=1), Row(n=2)]
    alive = [weakref.ref(row) for row in rows]
    future.has_more_pages = True
    future.on_page([rows[0]])
    future.has_more_pages = False
    future.on_page([rows[1]])
    rows.clear()
    assert course.results == [[{"n": 1}, {"n": 2}]]
    course.results.clear()
    assert [row() for row in alive] == [None, None]


def test_what_fails_keeps_nothing_either() -> None:
    course = begin(may_repeat=False)
    course.session.asked[0].on_error(ValueError("refused"))
    assert (course.session.asked[0].on_page, course.session.asked[0].on_error) == (None, None)


@pytest.mark.parametrize("may_repeat", [True, False])
@pytest.mark.parametrize("hosts", [HOSTS, ["a"]])
def test_without_an_answer_it_ends_in_time(may_repeat: bool, hosts: list[str]) -> None:
    course = begin(may_repeat=may_repeat, hosts=hosts)
    course.clock.advance(SECOND_S)
    course.clock.advance(ANSWER_S - SECOND_S - 0.1)
    assert course.results == []
    course.clock.advance(0.1)
    ((error,),) = course.results
    assert isinstance(error, TimeoutError)
    course.session.asked[0].on_page([{"n": 1}])  # late
    assert len(course.results) == 1


@pytest.mark.parametrize("hosts", [HOSTS, ["a"]])
def test_each_page_has_its_time(hosts: list[str]) -> None:
    course = begin(hosts=hosts)
    course.clock.advance(SECOND_S)
    future = course.session.asked[-1]
    future.has_more_pages = True
    for _ in range(3):
        course.clock.advance(ANSWER_S - SECOND_S - 0.1)
        future.on_page([{"n": 1}])
        assert course.results == []
    course.clock.advance(ANSWER_S - 0.1)
    assert course.results == []
    course.clock.advance(0.1)
    ((error,),) = course.results
    assert isinstance(error, TimeoutError)


def test_behind_a_silence_another_node_is_asked_within_the_same_time() -> None:
    course = begin()
    course.clock.advance(SECOND_S)
    first, second = course.session.asked
    assert second.attempted_hosts[0] in ("b", "c")
    second.on_page(None)
    assert course.results == [[]]
    assert not course.clock.getDelayedCalls()
    first.on_page([{"n": 1}])
    assert course.results == [[]]
    assert len(course.session.asked) == 2


def test_a_late_failure_changes_nothing() -> None:
    course = begin()
    course.clock.advance(SECOND_S)
    first, second = course.session.asked
    second.on_page([])
    first.on_error(RuntimeError("late"))
    assert course.results == [[]]


def test_rows_of_two_nodes_are_never_mixed() -> None:
    course = begin()
    first = course.session.asked[0]
    first.has_more_pages = True
    first.on_page([{"n": 1}])
    course.clock.advance(SECOND_S)
    second = course.session.asked[1]
    second.has_more_pages = True
    second.on_page([{"n": 1}])
    first.has_more_pages = False
    first.on_page([{"n": 2}])
    assert (first.fetched, second.fetched) == (1, 1)
    assert course.results == [[{"n": 1}, {"n": 2}]]


def test_a_node_that_fails_is_followed_by_another_at_once_and_by_no_third() -> None:
    course = begin()
    broken, slow = RuntimeError("its connection broke"), RuntimeError("no answer")
    course.session.asked[0].on_error(broken)
    assert len(course.session.asked) == 2
    assert course.results == []
    course.session.asked[1].on_error(slow)
    assert course.results == [[broken, slow]]
    assert not course.clock.getDelayedCalls()


def test_another_node_has_its_time_even_where_the_first_failed_late() -> None:
    course = begin()
    course.clock.advance(SECOND_S / 2)
    course.session.asked[0].on_error(RuntimeError("broke"))
    course.clock.advance(ANSWER_S - SECOND_S / 2 - 0.1)
    assert course.results == []
    course.clock.advance(0.1)
    assert len(course.results) == 1


def test_what_any_node_would_refuse_is_asked_once() -> None:
    course, refused = begin(), ValueError("no such table")
    course.session.asked[0].on_error(refused)
    assert course.results == [[refused]]
    assert course.session.hosts == ["a"]


def test_a_compare_and_set_is_asked_once() -> None:
    course, broken = begin(may_repeat=False), RuntimeError("broke")
    course.clock.advance(ANSWER_S - 0.1)
    assert course.session.hosts == ["a"]
    course.session.asked[0].on_error(broken)
    assert course.results == [[broken]]
    assert course.session.hosts == ["a"]


def test_without_another_node_the_first_decides() -> None:
    course = begin(hosts=["a"])
    course.clock.advance(SECOND_S)
    assert course.results == []
    course.session.asked[0].on_page([])
    assert course.results == [[]]


def test_a_driver_that_is_shut_down_has_no_answer() -> None:
    shut = RuntimeError("shut down")
    course = begin(failure=shut)
    assert course.results == [[shut]]
    assert not course.clock.getDelayedCalls()


class Worker:
    """Calls that block are carried out at once."""

    async def run(self, call: Callable[[], Any]) -> Any:
        return call()


@attrs.define
class Cluster:
    """A cluster of the driver."""

    session: Session
    metadata: Any = None

    def __attrs_post_init__(self) -> None:
        self.metadata = self

    def connect(self) -> Session:
        return self.session

    def all_hosts(self) -> list[Any]:
        return [Host(name) for name in HOSTS]


@attrs.frozen
class Host:
    """A node."""

    name: str
    is_up: bool = True


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> tuple[CassandraSession, Session]:
    if missing_packages():
        pytest.skip(f"needs {' and '.join(missing_packages())}: pip install -e '.[distributed]'")
    driver = Session()
    session = CassandraSession(cast(Any, Reactor()), cast(Any, Worker()), CassandraAccess([]))
    monkeypatch.setattr(session, "_make_cluster", lambda: Cluster(driver))
    return session, driver


def failed(call: Deferred[Any]) -> list[type]:
    found: list[type] = []
    call.addErrback(lambda failure: found.append(type(failure.value)))
    return found


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("refused", "refused", NotDone), ("refused", "late", Unanswered), ("late", "refused", Unanswered)],
)
def test_a_write_was_not_done_only_if_all_nodes_that_were_asked_refused_it(
    first: str, second: str, expected: type, connected: tuple[CassandraSession, Session]
) -> None:
    from cassandra import OperationTimedOut, Unavailable

    errors = {"refused": Unavailable("too few replicas"), "late": OperationTimedOut({}, None)}
    session, driver = connected
    ended = failed(Deferred.fromCoroutine(session.write([("words", [])], is_one=True)))
    driver.asked[0].on_error(errors[first])
    assert ended == []
    driver.asked[1].on_error(errors[second])
    assert ended == [expected]


def test_reads_and_writes_are_asked_again_and_compares_are_not(connected: tuple[CassandraSession, Session]) -> None:
    from cassandra import OperationTimedOut

    session, driver = connected
    late = OperationTimedOut({}, None)
    for call, times in (
        (session.read("r", []), 2),
        (session.write([("w", [])], is_one=True), 2),
        (session.compare("c", []), 1),
    ):
        driver.asked.clear()
        ended = failed(Deferred.fromCoroutine(cast(Any, call)))
        driver.asked[0].on_error(late)
        assert len(driver.asked) == times
        for future in driver.asked[1:]:
            future.on_error(late)
        assert len(ended) == 1


def test_no_answer_tells_the_last_error() -> None:
    assert str(NoAnswer([RuntimeError("first"), RuntimeError("last")])) == "last"
