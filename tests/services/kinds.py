"""The services by name."""

from __future__ import annotations

from tests.services.cassandra import Cassandra
from tests.services.rabbitmq import RabbitMq
from tests.services.swift import Swift

KINDS: dict[str, type[RabbitMq] | type[Cassandra] | type[Swift]] = {kind.name: kind for kind in (RabbitMq, Cassandra, Swift)}
"""In the order in which they are shown."""
