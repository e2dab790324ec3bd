"""`queue count` beside a running server: the command counts by itself where it can, over a real socket and real files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import attrs
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailismus.config.settings import RetrySettings
from mailismus.disk.posix import Access, PosixDisk
from mailismus.disk.worker import ThreadWorker, Workers
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import Area, ICountingPlan, Message, Summary
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.clustered.opening import open_queue
from mailismus.queue.providers.clustered.planned import PlanCounter
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.admin.samples import LATER, MX
from tests.admin.worlds import Serving, World
from tests.clustered.harness import queue_settings

RETRY = RetrySettings(maxtime_s=259_200.0, maxtime_reports_s=86_400.0, delays_s=(9000.0,))


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

    def summary(self) -> Summary:
        return self._counter.summary()


class Clustered(Serving):
    """A server over a clustered queue in the world's directories."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.counts = 0
        """How often the server counted."""
        super().__init__(world.socket_path, self._make)
        self.start()
        self.do(self.provider.open)

    def _make(self, clock: IReactorTime) -> Clustered:
        made = queue_settings()
        spool = attrs.evolve(made.spool, rootpath=str(self.world.path / "spool"))
        settings = attrs.evolve(made, rootpath=str(self.world.path / "queue"), spool=spool)
        threads = ThreadWorker(self.reactor, "journal"), ThreadWorker(self.reactor, "files")
        self._threads = threads
        disk = PosixDisk()
        for directory in (settings.rootpath, spool.rootpath):
            os.chmod(directory, 0o700)
        for thread in threads:
            thread.start()
        opened = open_queue(settings, disk, threads[1], clock, os.urandom)
        self.provider = ClusteredQueue(settings, disk, opened, Workers(*threads), clock, clock.seconds)
        self.manager = QueueManager(self.provider, RETRY, clock, clock.seconds, MemoryMailLog())
        self.search, self.read, self.visit_all = self.manager.search, self.manager.read, self.manager.visit_all
        self.stuck = self.manager.stuck
        return self

    def summary(self) -> Deferred[Summary]:
        self.counts += 1
        return self.manager.summary()

    def counting_plan(self) -> ICountingPlan | None:
        return self.manager.counting_plan()

    def put(self, *recipients: bytes) -> SpoolId:
        def accept() -> Deferred[SpoolId]:
            draft = self.manager.draft()
            draft.write(b"x" * 1000)
            accepting = self.manager.accept(draft, Envelope(b"a@b.example", recipients, b"192.0.2.7", False))
            return accepting.addCallback(lambda _: draft.spool_id)

        return self.do(accept)

    def settle(self, kind: OutcomeKind, entries: int = 1000) -> None:
        """So many entries that were not tried, or all, are tried: they wait, or are over, and that is durable."""

        def settle(messages: list[Message]) -> None:
            for one in messages:
                self.manager.settle(one, [(entry, Outcome(kind, LATER, MX)) for entry in one.entries])

        self.do(lambda: self.manager.take(Area.INCOMING, entries).addCallback(settle))
        self.do(lambda: Deferred.fromCoroutine(self._until_sure()))

    async def _until_sure(self) -> None:
        while self.manager.in_doubt:
            await deferLater(self.reactor, 0.001)

    def rest(self) -> None:
        for _ in range(2):
            self.do(lambda: self.provider.checkpoints.run())

    def stop(self) -> None:
        self.do(self.provider.close)
        super().stop()
        for thread in self._threads:
            thread.stop()


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

    return {"incoming": area(*incoming), "deferred": area(*deferred), "bounces": area(0, 0), "exact": True}


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

    def __init__(self, plan: ICountingPlan | None) -> None:
        self._plan = plan

    def next(self) -> Mapping[str, object] | None:
        part = self._plan.next() if self._plan is not None else None
        return {**part, "queue": "/nowhere/queue"} if part is not None and "queue" in part else part


def test_a_part_that_is_none_makes_the_server_count(server: Clustered, counter: Counter, count: Count) -> None:
    server.put(b"c@d.example")

    class Strange:
        def __init__(self) -> None:
            self.is_over = False

        def next(self) -> Mapping[str, object] | None:
            self.is_over, was_over = True, self.is_over
            return None if was_over else {"clusters": 7}

    server.counting_plan = Strange  # type: ignore[method-assign] # the server's, for this test
    assert count() == counted((1, 1))
    assert server.counts == 1


def test_a_filter_makes_the_server_count(world: World, server: Clustered, counter: Counter) -> None:
    server.put(b"c@d.example")
    assert world.run("queue", "count", "area=incoming") == 0
    assert counter.parts == 0
