"""The models of the stores keep what the stores promise, and give calls the fates that were planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.objects import IObjects
from mailismus.queue.providers.distributed.stores.rows import IRows
from tests.distributed.conformance.broker import BrokerContract, Receiver
from tests.distributed.conformance.objects import Body, ObjectsContract
from tests.distributed.conformance.rows import LEASES, RowsContract
from tests.distributed.models.broker import BrokerModel, ModelBroker
from tests.distributed.models.fates import TIMEOUT_S, Fate, Fates
from tests.distributed.models.objects import ObjectsModel
from tests.distributed.models.rows import RowsModel
from tests.fakes.waiting import result_of

T = TypeVar("T")


class _Harness:
    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_790_000_000.0)

    def wait(self, deferred: Deferred[T]) -> T:
        return result_of(deferred, lambda: self.clock.advance(0.05), 1000)

    def pass_time(self, seconds: float) -> None:
        for _ in range(10):
            self.clock.advance(seconds / 10)

    def close(self) -> None:
        pass


class _BrokerHarness(_Harness):
    def __init__(self) -> None:
        super().__init__()
        self.model = BrokerModel(self.clock)

    def client(self) -> IBroker:
        return self.model.client()

    def name(self, name: str) -> str:
        return name

    def lose(self, client: IBroker) -> None:
        assert isinstance(client, ModelBroker)
        client.lose()


class _RowsHarness(_Harness):
    def __init__(self) -> None:
        super().__init__()
        self.model = RowsModel(self.clock)

    def client(self) -> IRows:
        return self.model.client()


class _ObjectsHarness(_Harness):
    def __init__(self) -> None:
        super().__init__()
        self.model = ObjectsModel(self.clock)

    def client(self) -> IObjects:
        return self.model.client()


class TestBrokerModel(BrokerContract):
    @pytest.fixture
    def harness(self) -> _BrokerHarness:
        return _BrokerHarness()


class TestRowsModel(RowsContract):
    @pytest.fixture
    def harness(self) -> _RowsHarness:
        return _RowsHarness()


class TestObjectsModel(ObjectsContract):
    @pytest.fixture
    def harness(self) -> _ObjectsHarness:
        return _ObjectsHarness()


def outcome(harness: _Harness, call: Callable[[], Deferred[Any]]) -> str:
    try:
        harness.wait(call())
    except (NotDone, Unanswered) as error:
        return type(error).__name__
    return "done"


@pytest.mark.parametrize(
    ("fate", "heard", "is_there", "is_there_late"),
    [
        (Fate.DONE, "done", True, True),
        (Fate.NOT_DONE, "NotDone", False, False),
        (Fate.UNANSWERED, "Unanswered", True, True),
        (Fate.LATE, "Unanswered", False, True),
        (Fate.NEVER, "Unanswered", False, False),
    ],
)
def test_a_call_has_the_fate_that_was_planned(fate: Fate, heard: str, is_there: bool, is_there_late: bool) -> None:
    harness = _ObjectsHarness()
    client = harness.model.client()
    harness.wait(client.make())
    client.fates.plan(fate, call="put")
    begun = harness.clock.seconds()
    assert outcome(harness, lambda: client.put("a", Body(b"a"))) == heard
    assert (harness.clock.seconds() - begun >= TIMEOUT_S) == (heard == "Unanswered")
    assert (harness.model.objects == {"a": b"a"}) == is_there
    client.fates.do_late()
    assert (harness.model.objects == {"a": b"a"}) == is_there_late


def test_a_late_change_sees_what_has_come_before_it() -> None:
    harness = _RowsHarness()
    one, two = harness.model.client(), harness.model.client()
    harness.wait(one.make([LEASES]))
    one.fates.plan(Fate.LATE, call="add")
    assert outcome(harness, lambda: one.add(LEASES, ("a",), {"owner": 1})) == "Unanswered"
    assert harness.wait(two.add(LEASES, ("a",), {"owner": 2})) is None
    one.fates.do_late()
    assert harness.wait(two.row(LEASES, ("a",))) == {"name": "a", "owner": 2}


def test_a_store_that_is_away_does_nothing() -> None:
    harness = _BrokerHarness()
    client = harness.model.client()
    harness.wait(client.declare(["q"]))
    client.fates.is_away = True
    assert outcome(harness, lambda: client.publish("q", b"1")) == "NotDone"
    client.fates.is_away = False
    assert harness.wait(client.depth("q")) == 0


def test_a_broker_that_was_wiped_has_no_queue_and_has_told_its_consumers() -> None:
    harness = _BrokerHarness()
    client = harness.model.client()
    receiver = Receiver()
    harness.wait(client.declare(["q"]))
    harness.wait(client.consume("q", 1, receiver))
    harness.model.wipe()
    harness.model.clock.advance(0)
    assert receiver.losses == 1
    assert outcome(harness, lambda: client.publish("q", b"1")) == "QueueMissing"
    assert harness.wait(client.declare(["q"])) == ["q"]


def test_plans_are_for_the_calls_that_they_name() -> None:
    clock = Clock()
    fates = Fates(clock, "store")
    fates.plan(Fate.NOT_DONE, call="write")
    fates.plan(Fate.NOT_DONE)
    results: list[object] = []
    for call in ("read", "read", "write"):
        fates.carry_out(call, lambda: "done").addBoth(results.append)
    clock.advance(0)
    assert [result == "done" for result in results] == [False, True, False]
    assert fates.calls == ["read", "read", "write"]
