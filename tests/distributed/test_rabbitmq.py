"""The client of a real RabbitMQ keeps what the broker promises.

Each test is skipped, with the reason, where the service is not up.
"""

from __future__ import annotations

import pytest

from mailismus.queue.providers.distributed.stores.broker import IBroker
from mailismus.queue.providers.distributed.stores.rabbitmq.client import RabbitBroker
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import RabbitAccess
from tests.distributed.conformance.broker import BrokerContract
from tests.distributed.services import RealHarness, host_of, packages, service, unique
from tests.distributed.waiting import reactor

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
