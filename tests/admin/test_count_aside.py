"""`queue count` beside a running server: the command counts by itself where it can, over a real socket and real files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import pytest

from mailismus.disk.posix import Access, PosixDisk
from mailismus.mail.outcome import OutcomeKind
from mailismus.queue.interface import ICountingPlan, Summary
from mailismus.queue.providers.clustered.read.planned_count import PlanCounter
from tests.admin.clustered import Clustered
from tests.admin.worlds import World


class Counter:
    """Counts as the clustered queue's does, and tells what it was told. `failure`: what reading fails with."""

    def __init__(self) -> None:
        self.parts = 0
        self.failure: OSError | None = None
        self.before: Callable[[], None] | None = None
        """Done before the next part."""
        self._counter = PlanCounter(PosixDisk(Access.READ_ONLY))

    def begin(self) -> Counter:
        self._counter = PlanCounter(PosixDisk(Access.READ_ONLY))
        self.parts = 0
        return self

    def add(self, part: Mapping[str, object]) -> None:
        self.parts += 1
        act, self.before = self.before, None
        if act is not None:
            act()
        if self.failure is not None and "clusters" in part:
            raise self.failure
        self._counter.add(part)

    @property
    def is_unsure(self) -> bool:
        return self._counter.is_unsure

    def check(self, part: Mapping[str, object]) -> None:
        self.parts += 1
        self._counter.check(part)

    def summary(self) -> Summary:
        return self._counter.summary()


@pytest.fixture
def counter(world: World) -> Counter:
    counter = Counter()
    world.new_counter = counter.begin  # type: ignore[method-assign] # the world's, for these tests
    return counter


@pytest.fixture
def server(world: World, counter: Counter) -> Iterator[Clustered]:
    server = Clustered(world)
    yield server
    server.stop()


@pytest.fixture
def count(world: World, capsys: pytest.CaptureFixture[str]) -> Callable[[], dict[str, object]]:
    def run() -> dict[str, object]:
        assert world.run("queue", "count", "--json") == 0
        return cast(dict[str, object], json.loads(capsys.readouterr().out))

    return run


Count = Callable[[], dict[str, object]]


def counted(incoming: tuple[int, int], deferred: tuple[int, int] = (0, 0)) -> dict[str, object]:
    def area(entries: int, messages: int) -> dict[str, int]:
        return {"entries": entries, "messages": messages, "bytes": 1000 * messages}

    return {
        "incoming": area(*incoming),
        "deferred": area(*deferred),
        **{name: area(0, 0) for name in ("bounces", "hold", "deleted")},
        "exact": True,
    }


def test_counts_agree_while_entries_come_rest_and_go(server: Clustered, counter: Counter, count: Count) -> None:
    assert count() == counted((0, 0))
    for number in range(3):
        server.put(*[b"%d@d.example" % at for at in range(number + 1)])
    assert count() == counted((6, 3))
    server.rest()
    assert count() == counted((6, 3))
    server.put(b"c@d.example")
    server.settle(OutcomeKind.DEFERRED, 2)
    assert count()["exact"] is True
    server.settle(OutcomeKind.DEFERRED)
    assert count() == counted((0, 0), (7, 4))
    server.rest()
    assert count() == counted((0, 0), (7, 4))
    server.put(b"c@d.example")
    server.rest()
    server.settle(OutcomeKind.DELIVERED)
    assert count() == counted((0, 0), (7, 4))
    assert counter.parts > 1
    assert server.counts == 0


def test_what_comes_to_rest_beside_a_count_counts_once(server: Clustered, counter: Counter, count: Count) -> None:
    server.put(b"c@d.example")
    server.rest()
    server.put(b"c@d.example", b"e@f.example")
    counter.before = server.rest
    assert count() == counted((3, 2))
    assert server.counts == 0


@pytest.mark.parametrize("failure", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_where_the_files_can_not_be_read_the_server_counts(
    server: Clustered, counter: Counter, count: Count, failure: OSError
) -> None:
    server.put(b"c@d.example")
    server.rest()
    counter.failure = failure
    assert count() == counted((1, 1))
    assert server.counts == 1


def test_where_the_files_are_not_to_be_seen_the_server_counts(server: Clustered, counter: Counter, count: Count) -> None:
    server.put(b"c@d.example")
    server.rest()
    plan = server.manager.counting_plan
    server.counting_plan = lambda: Elsewhere(plan())  # type: ignore[method-assign] # the server's, for this test
    assert count() == counted((1, 1))
    assert server.counts == 1


class Elsewhere:
    """A plan as of a server that sees other directories."""

    provider = "clustered"

    def __init__(self, plan: ICountingPlan | None) -> None:
        self._plan = plan

    def next(self) -> Mapping[str, object] | None:
        part = self._plan.next() if self._plan is not None else None
        return {**part, "queue": "/nowhere/queue"} if part is not None and "queue" in part else part


def test_a_part_that_is_none_makes_the_server_count(server: Clustered, counter: Counter, count: Count) -> None:
    server.put(b"c@d.example")

    class Strange:
        provider = "clustered"

        def __init__(self) -> None:
            self.is_over = False

        def next(self) -> Mapping[str, object] | None:
            self.is_over, was_over = True, self.is_over
            return None if was_over else {"clusters": 7}

    server.counting_plan = Strange  # type: ignore[method-assign] # the server's, for this test
    assert count() == counted((1, 1))
    assert server.counts == 1


def test_a_plan_of_another_provider_makes_the_server_count(server: Clustered, counter: Counter, count: Count) -> None:
    server.put(b"c@d.example")

    class Others(Elsewhere):
        provider = "novelty"

    plan = server.manager.counting_plan
    server.counting_plan = lambda: Others(plan())  # type: ignore[method-assign] # the server's, for this test
    assert count() == counted((1, 1))
    assert server.counts == 1
    assert counter.parts == 0


def test_a_filter_makes_the_server_count(world: World, server: Clustered, counter: Counter) -> None:
    server.put(b"c@d.example")
    assert world.run("queue", "count", "area=incoming") == 0
    assert counter.parts == 0
