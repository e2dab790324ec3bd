"""A connection to one node of the broker that is lost, or silent, is followed by one to the next node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.failure import NotDone, QueueMissing, Unanswered
from mailismus.queue.providers.distributed.stores.libraries import load, missing_packages
from mailismus.queue.providers.distributed.stores.rabbitmq.confirming import (
    CONFIRM_S,
    REFUSED_PAUSE_S,
    REFUSED_S,
    Confirming,
)
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import (
    CONNECT_S,
    PAUSE_S,
    RabbitAccess,
    RabbitConnection,
)

HOSTS = [("a", 1), ("b", 2), ("c", 3)]


class Channel:
    """A channel of pika."""

    is_open = True

    def __init__(self) -> None:
        self.published: list[Deferred[None]] = []
        self.numbers: list[str] = []
        self.on_return: Any = None

    def close(self) -> None:
        self.is_open = False

    def refuse(self, place: int) -> None:
        """What was published there is not taken over."""
        self.published[place].errback(load("pika", "exceptions").NackError([]))

    def give_back(self, place: int) -> None:
        """There is no queue for it. Its confirm follows."""
        message = SimpleNamespace(properties=SimpleNamespace(message_id=self.numbers[place]))
        self.on_return(message)
        self.published[place].errback(load("pika", "exceptions").UnroutableError([]))

    def confirm_delivery(self) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        done.callback(None)
        return done

    def add_on_return_callback(self, call: object) -> None:
        self.on_return = call

    def basic_publish(self, exchange: str, queue: str, body: bytes, properties: Any, **options: object) -> Deferred[None]:
        self.published.append(Deferred())
        self.numbers.append(properties.message_id)
        return self.published[-1]


class Made:
    """A connection of pika. It is its own transport, and what lies below."""

    def __init__(self) -> None:
        self.is_open = True
        self.is_frozen = False
        self.bytes_received = 100
        self.server_properties: dict[str, str] = {}
        self.channels: list[Channel] = []
        self.transport = self

    def abortConnection(self) -> None:
        self.is_open = False
        for channel in self.channels:
            channel.is_open = False

    def add_on_connection_blocked_callback(self, call: object) -> None:
        """It is never full."""

    add_on_connection_unblocked_callback = add_on_connection_blocked_callback

    def channel(self) -> Deferred[Channel]:
        opened: Deferred[Channel] = Deferred()
        if not self.is_frozen:
            self.channels.append(Channel())
            opened.callback(self.channels[-1])
        return opened


class Broker(RabbitConnection):
    """A connection to nodes that are made up. `down`: hosts that refuse."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__(cast(Any, self.clock), RabbitAccess(HOSTS))
        self.tried: list[str] = []
        self.down: set[str] = set()
        self.made: list[Made] = []

    async def _open_at(self, host: str, port: int) -> Any:
        self.tried.append(host)
        if host in self.down:
            raise ConnectionRefusedError(host)
        self.made.append(Made())
        self._hear(self.made[-1])
        return self.made[-1]


def end_of(call: Any) -> list[Any]:
    """Its result or error, once there is one."""
    ended: list[Any] = []
    Deferred.fromCoroutine(call).addCallbacks(ended.append, lambda failure: ended.append(failure.value))
    return ended


def test_a_lost_connection_is_made_anew_at_the_next_host() -> None:
    broker = Broker()
    for _ in range(4):
        assert end_of(broker.get()) == [broker.made[-1]]
        assert end_of(broker.get()) == [broker.made[-1]]
        broker.abort()
    assert broker.tried == ["a", "b", "c", "a"]


def test_hosts_that_refuse_are_passed_over_and_all_are_tried() -> None:
    broker = Broker()
    broker.down = {"a", "b"}
    assert end_of(broker.get()) == [broker.made[-1]]
    assert broker.tried == ["a", "b", "c"]
    broker.abort()
    broker.down = {"a", "b", "c"}
    broker.tried.clear()
    (failure,) = end_of(broker.get())
    assert isinstance(failure, NotDone)
    assert broker.tried == ["a", "b", "c"]
    broker.clock.advance(PAUSE_S)
    broker.down = {"a"}
    assert end_of(broker.get()) == [broker.made[-1]]
    assert broker.tried[3:] == ["a", "b"]


def test_a_connection_that_opens_no_channel_is_given_up() -> None:
    broker = Broker()
    end_of(broker.get())
    broker.made[0].is_frozen = True
    ended = end_of(broker.new_channel())
    broker.clock.advance(CONNECT_S)
    assert isinstance(ended[0], NotDone)
    end_of(broker.new_channel())
    assert broker.tried == ["a", "b"]


@pytest.fixture
def _pika() -> None:
    if missing_packages():
        pytest.skip(f"needs {' and '.join(missing_packages())}: pip install -e '.[distributed]'")


def publish(confirming: Confirming) -> list[Any]:
    return end_of(confirming.publish("", "q", b"", is_durable=True))


@pytest.mark.usefixtures("_pika")
def test_a_publish_without_its_confirm_gives_the_connection_up() -> None:
    broker = Broker()
    confirming = Confirming(cast(Any, broker.clock), broker)
    ended = publish(confirming)
    broker.clock.advance(CONFIRM_S)
    assert isinstance(ended[0], Unanswered)
    again = publish(confirming)
    broker.made[1].channels[0].published[0].callback(None)
    assert again == [None]
    assert broker.tried == ["a", "b"]


@pytest.mark.usefixtures("_pika")
def test_a_node_that_waits_for_another_one_keeps_its_connection() -> None:
    broker = Broker()
    confirming = Confirming(cast(Any, broker.clock), broker)
    ended = publish(confirming)
    broker.made[0].bytes_received += 8  # a heartbeat
    broker.clock.advance(CONFIRM_S)
    assert isinstance(ended[0], Unanswered)
    assert broker.made[0].is_open


@pytest.mark.usefixtures("_pika")
def test_a_channel_that_did_not_confirm_in_time_is_left() -> None:
    broker = Broker()
    confirming = Confirming(cast(Any, broker.clock), broker)
    publish(confirming)
    broker.clock.advance(CONFIRM_S / 2)
    beside = publish(confirming)
    broker.made[0].bytes_received += 8
    broker.clock.advance(CONFIRM_S / 2)
    first = broker.made[0].channels[0]
    again = publish(confirming)
    assert len(first.published) == 2
    broker.made[0].channels[1].published[0].callback(None)
    assert again == [None]
    assert first.is_open
    broker.made[0].bytes_received += 8
    broker.clock.advance(CONFIRM_S / 2)
    assert isinstance(beside[0], Unanswered)
    assert not first.is_open


@pytest.mark.usefixtures("_pika")
def test_a_publish_of_a_lost_channel_does_not_end_the_next_one() -> None:
    broker = Broker()
    confirming = Confirming(cast(Any, broker.clock), broker)
    publish(confirming)
    broker.clock.advance(CONFIRM_S / 2)
    broker.abort()
    publish(confirming)
    broker.clock.advance(CONFIRM_S / 2)
    assert broker.made[1].is_open


@pytest.mark.usefixtures("_pika")
def test_what_is_refused_is_published_again_by_another_channel() -> None:
    broker = Broker()
    confirming = Confirming(cast(Any, broker.clock), broker)
    ended, beside = publish(confirming), publish(confirming)
    (first,) = broker.made[0].channels
    first.refuse(0)
    assert ended == []
    broker.clock.advance(REFUSED_PAUSE_S)
    second = broker.made[0].channels[1]
    second.published[0].callback(None)
    assert ended == [None]
    assert first.is_open  # another one waits for its confirm there
    first.published[1].callback(None)
    assert beside == [None]
    assert not first.is_open
    assert second.is_open


@pytest.mark.usefixtures("_pika")
def test_what_is_refused_again_and_again_is_unanswered_in_time_and_leaves_no_channel() -> None:
    broker = Broker()
    confirming = Confirming(cast(Any, broker.clock), broker)
    ended = publish(confirming)
    while not ended:
        broker.made[0].channels[-1].refuse(0)
        broker.clock.advance(REFUSED_PAUSE_S)
    assert isinstance(ended[0], Unanswered)
    assert broker.clock.seconds() == REFUSED_S + REFUSED_PAUSE_S  # the last pause is the test's
    assert not any(channel.is_open for channel in broker.made[0].channels)


@pytest.mark.usefixtures("_pika")
def test_a_queue_that_is_missing_is_told_by_a_channel_that_was_left() -> None:
    broker = Broker()
    confirming = Confirming(cast(Any, broker.clock), broker)
    refused, returned = publish(confirming), publish(confirming)
    (first,) = broker.made[0].channels
    first.refuse(0)
    broker.clock.advance(REFUSED_PAUSE_S)
    first.give_back(1)
    assert isinstance(returned[0], QueueMissing)
    broker.made[0].channels[1].give_back(0)
    assert isinstance(refused[0], QueueMissing)
