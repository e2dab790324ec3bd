"""What `IBroker` promises."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from twisted.internet.defer import Deferred, gatherResults

from mailismus.queue.providers.distributed.stores.broker import IBroker, IConsumer, TriggerDelivery
from mailismus.queue.providers.distributed.stores.failure import QueueMissing
from tests.distributed.conformance.harness import BrokerHarness

SETTLE_S = 0.3
"""How long nothing more is expected to come."""


@attrs.define
class Receiver:
    """Keeps what it is told."""

    triggers: list[TriggerDelivery] = attrs.field(factory=list)
    losses: int = 0

    def on_trigger(self, trigger: TriggerDelivery) -> None:
        self.triggers.append(trigger)

    def on_lost(self) -> None:
        self.losses += 1

    @property
    def bodies(self) -> list[bytes]:
        return [trigger.body for trigger in self.triggers]


class BrokerContract:
    """A test class makes a subclass with a fixture `harness`."""

    @pytest.fixture(autouse=True)
    def _ends(self, harness: BrokerHarness) -> Iterator[None]:
        yield
        harness.close()

    @pytest.fixture
    def broker(self, harness: BrokerHarness) -> IBroker:
        return harness.client()

    @pytest.fixture
    def queue(self, harness: BrokerHarness, broker: IBroker) -> str:
        name = harness.name("work")
        assert harness.wait(broker.declare([name])) == [name]
        return name

    def received(self, harness: BrokerHarness, receiver: Receiver, count: int) -> list[bytes]:
        """The bodies, once so many have come, and no more come."""
        for _ in range(100):
            if len(receiver.triggers) >= count:
                break
            harness.pass_time(0.1)
        harness.pass_time(SETTLE_S)
        return receiver.bodies

    def consume(self, harness: BrokerHarness, broker: IBroker, queue: str, prefetch: int = 10) -> tuple[IConsumer, Receiver]:
        receiver = Receiver()
        return harness.wait(broker.consume(queue, prefetch, receiver)), receiver

    def publish(self, harness: BrokerHarness, broker: IBroker, queue: str, *bodies: bytes) -> None:
        harness.wait(gatherResults([broker.publish(queue, body) for body in bodies]))

    def test_a_queue_is_made_once(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        other = harness.name("other")
        assert harness.wait(broker.declare([queue, other])) == [other]
        assert harness.wait(harness.client().declare([queue, other])) == []
        absent = harness.name("absent")
        assert harness.wait(broker.missing([queue, absent, other])) == [absent]

    def test_messages_come_in_the_order_in_which_they_were_published(
        self, harness: BrokerHarness, broker: IBroker, queue: str
    ) -> None:
        bodies = [b"%d" % number for number in range(50)]
        self.publish(harness, broker, queue, *bodies)
        consumer, receiver = self.consume(harness, harness.client(), queue, 100)
        assert self.received(harness, receiver, 50) == bodies
        assert not any(trigger.is_redelivered for trigger in receiver.triggers)
        for trigger in receiver.triggers:
            consumer.ack(trigger)

    def test_a_body_is_any_bytes(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        bodies = [b"", bytes(range(256)), b"x" * 20_000]
        self.publish(harness, broker, queue, *bodies)
        _, receiver = self.consume(harness, broker, queue)
        assert self.received(harness, receiver, 3) == bodies

    def test_a_message_to_no_queue_is_not_done(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        absent = harness.name("absent")
        results = [broker.publish(queue, b"1"), broker.publish(absent, b"2"), broker.publish(queue, b"3")]
        outcomes = []
        for result in results:
            try:
                harness.wait(result)
            except QueueMissing as error:
                outcomes.append(absent in str(error))
            else:
                outcomes.append(False)
        assert outcomes == [False, True, False]
        _, receiver = self.consume(harness, broker, queue)
        assert self.received(harness, receiver, 2) == [b"1", b"3"]

    def test_no_queue_can_be_consumed_that_is_not_there(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        with pytest.raises(QueueMissing):
            harness.wait(broker.consume(harness.name("absent"), 1, Receiver()))
        with pytest.raises(QueueMissing):
            harness.wait(broker.depth(harness.name("absent")))
        self.publish(harness, broker, queue, b"the client is well")

    def test_no_more_than_prefetch_are_held(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        self.publish(harness, broker, queue, b"1", b"2", b"3", b"4")
        consumer, receiver = self.consume(harness, broker, queue, 2)
        assert self.received(harness, receiver, 2) == [b"1", b"2"]
        consumer.ack(receiver.triggers[1])
        assert self.received(harness, receiver, 3) == [b"1", b"2", b"3"]

    def test_what_a_cancelled_consumer_held_comes_again(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        self.publish(harness, broker, queue, b"1", b"2")
        consumer, receiver = self.consume(harness, broker, queue)
        self.received(harness, receiver, 2)
        consumer.ack(receiver.triggers[0])
        harness.pass_time(SETTLE_S)
        harness.wait(consumer.cancel())
        assert receiver.losses == 0
        consumer.ack(receiver.triggers[1])  # too late: it is not its own any more
        _, heir = self.consume(harness, broker, queue)
        assert self.received(harness, heir, 1) == [b"2"]
        assert heir.triggers[0].is_redelivered

    def test_what_a_lost_client_held_comes_again_to_another(
        self, harness: BrokerHarness, broker: IBroker, queue: str
    ) -> None:
        self.publish(harness, broker, queue, b"1", b"2")
        victim = harness.client()
        consumer, receiver = self.consume(harness, victim, queue)
        self.received(harness, receiver, 2)
        consumer.ack(receiver.triggers[0])
        harness.pass_time(SETTLE_S)
        harness.lose(victim)
        harness.pass_time(SETTLE_S)
        assert receiver.losses == 1
        _, heir = self.consume(harness, broker, queue)
        assert self.received(harness, heir, 1) == [b"2"]
        assert heir.triggers[0].is_redelivered
        assert receiver.losses == 1

    def test_a_lost_client_connects_again(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        self.publish(harness, broker, queue, b"1")
        harness.lose(broker)
        harness.pass_time(SETTLE_S)
        self.publish(harness, broker, queue, b"2")
        _, receiver = self.consume(harness, broker, queue)
        assert self.received(harness, receiver, 2) == [b"1", b"2"]

    def test_two_consumers_share_a_queue(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        _, one = self.consume(harness, harness.client(), queue, 2)
        _, two = self.consume(harness, harness.client(), queue, 2)
        self.publish(harness, broker, queue, b"1", b"2", b"3", b"4", b"5")
        self.received(harness, one, 2)
        self.received(harness, two, 2)
        assert sorted(one.bodies + two.bodies) == [b"1", b"2", b"3", b"4"]
        assert len(one.bodies) == 2

    def test_depth_counts_what_waits(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        assert harness.wait(broker.depth(queue)) == 0
        self.publish(harness, broker, queue, b"1", b"2", b"3")
        harness.pass_time(SETTLE_S)
        assert harness.wait(broker.depth(queue)) == 3

    def test_a_removed_queue_is_gone_with_its_messages(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        self.publish(harness, broker, queue, b"1")
        _, receiver = self.consume(harness, broker, queue)
        self.received(harness, receiver, 1)
        harness.wait(broker.remove(queue))
        harness.wait(broker.remove(queue))
        harness.pass_time(SETTLE_S)
        assert receiver.losses == 1
        assert harness.wait(broker.declare([queue])) == [queue]
        assert harness.wait(broker.depth(queue)) == 0

    def test_everyone_who_listens_hears_news(self, harness: BrokerHarness, broker: IBroker) -> None:
        topic = harness.name("news")
        heard: list[bytes] = []
        lost: list[str] = []
        harness.wait(broker.tell(topic, b"nobody listens"))
        listener = harness.client()
        harness.wait(broker.listen(topic, heard.append, lambda: lost.append("own")))
        harness.wait(listener.listen(topic, heard.append, lambda: lost.append("other")))
        harness.wait(broker.tell(topic, b"news"))
        harness.pass_time(SETTLE_S)
        assert heard == [b"news", b"news"]
        harness.lose(listener)
        harness.pass_time(SETTLE_S)
        assert lost == ["other"]
        harness.wait(broker.tell(topic, b"more"))
        harness.pass_time(SETTLE_S)
        assert heard == [b"news", b"news", b"more"]

    def test_a_closed_client_is_told_nothing(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        client = harness.client()
        self.publish(harness, broker, queue, b"1")
        _, receiver = self.consume(harness, client, queue)
        self.received(harness, receiver, 1)
        harness.wait(client.close())
        harness.pass_time(SETTLE_S)
        assert receiver.losses == 0
        _, heir = self.consume(harness, broker, queue)
        assert self.received(harness, heir, 1) == [b"1"]

    def test_many_publishes_at_once_are_all_confirmed(self, harness: BrokerHarness, broker: IBroker, queue: str) -> None:
        sent: list[Deferred[None]] = [broker.publish(queue, b"%d" % number) for number in range(1000)]
        harness.wait(gatherResults(sent))
        harness.pass_time(SETTLE_S)
        assert harness.wait(broker.depth(queue)) == 1000
