"""The client of a real RabbitMQ keeps what the broker promises.

Each test is skipped, with the reason, where the service is not up.
"""

from __future__ import annotations

import pytest
from twisted.internet.testing import StringTransport

from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.rabbitmq.client import RabbitBroker
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import RabbitAccess
from mailismus.queue.providers.distributed.stores.rabbitmq.guarding import GuardedProtocol
from tests.distributed.conformance.broker import BrokerContract
from tests.distributed.services import RealHarness, host_of, packages, service, unique
from tests.distributed.waiting import reactor, wait_for

pytestmark = pytest.mark.usefixtures("_name_threads")


class RabbitHarness(RealHarness):
    """A running RabbitMQ."""

    def __init__(self) -> None:
        facts = service("rabbitmq")
        packages()
        self._access = RabbitAccess([host_of(facts)], facts["vhost"], facts["username"], facts["password"])
        self._clients: list[RabbitBroker] = []
        self._names: list[str] = []

    def client(self) -> RabbitBroker:
        client = RabbitBroker(reactor, self._access)
        self._clients.append(client)
        return client

    def name(self, name: str) -> str:
        self._names.append(unique(name))
        return self._names[-1]

    def lose(self, client: IBroker) -> None:
        assert isinstance(client, RabbitBroker)
        client.abort()

    def close(self) -> None:
        janitor = self.client()
        for name in self._names:
            self.wait(janitor.remove(name))
        for client in self._clients:
            self.wait(client.close())


class TestRabbitMq(BrokerContract):
    @pytest.fixture
    def harness(self) -> RabbitHarness:
        return RabbitHarness()


def _typed(broker: RabbitBroker) -> IBroker:
    """The client is of the interface."""
    return broker


@pytest.mark.parametrize(
    ("vhost", "password", "said"),
    [("nowhere", "", "vhost nowhere not found"), ("", "wrong", "ACCESS_REFUSED - Login was refused")],
)
def test_a_broker_that_refuses_a_client_is_told_word_for_word(vhost: str, password: str, said: str) -> None:
    facts = service("rabbitmq")
    packages()
    login = facts["username"], password or facts["password"]
    client = RabbitBroker(reactor, RabbitAccess([host_of(facts)], vhost or facts["vhost"], *login))
    with pytest.raises(NotDone) as refused:
        wait_for(client.missing(["a"]))
    assert said in refused.value.text


class Aborted(StringTransport):
    """A transport that was cut off, or not."""

    is_cut = False

    def abortConnection(self) -> None:
        self.is_cut = True


def test_bytes_that_are_no_amqp_end_the_connection() -> None:
    packages()
    import pika
    from pika.adapters.twisted_connection import TwistedProtocolConnection

    inner, transport = TwistedProtocolConnection(pika.ConnectionParameters()), Aborted()  # type: ignore[no-untyped-call]
    inner.ready.addErrback(lambda _: None)
    guard = GuardedProtocol(inner)
    guard.makeConnection(transport)
    guard.dataReceived(b"\x01\0\0\0\0\0\x04body" + b"no end")
    assert guard.refusal() == "what listens there is no RabbitMQ"
    assert transport.is_cut
