"""The services by name."""

from __future__ import annotations

from tests.services.cassandra import Cassandra
from tests.services.rabbitmq import RabbitMq
from tests.services.seat import node_name
from tests.services.swift import Swift

KINDS: dict[str, type[RabbitMq] | type[Cassandra] | type[Swift]] = {kind.name: kind for kind in (RabbitMq, Cassandra, Swift)}
"""In the order in which they are shown."""
_REPLICAS = {name: kind.replicas for name, kind in KINDS.items() if kind.replicas > 1}
NODES = [node_name(name, number) for name, count in _REPLICAS.items() for number in range(1, count + 1)]
"""Names of nodes, where services are replicated."""
