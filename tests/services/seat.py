"""Which node of its service a service is: its number among how many, and what all nodes of one service have in common."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import attrs

from tests.support.processes import free_port

REPLICAS = 3
"""Nodes of a replicated service."""


@attrs.frozen
class Seat:
    """One node among those of its service."""

    number: int
    """From 1. The first is started before the others."""
    ports: Sequence[int]
    """A port for each node, in the order of their numbers."""
    common: int
    """A port that means the same to all of them."""
    secret: str = attrs.field(repr=False)
    """By which they know each other."""

    @property
    def count(self) -> int:
        """How many nodes the service has."""
        return len(self.ports)

    @property
    def port(self) -> int:
        """Its own port."""
        return self.ports[self.number - 1]

    def called(self, kind: str) -> str:
        """The name of the node in commands: that of its service where it is the only one."""
        return kind if self.count == 1 else node_name(kind, self.number)


def seats(count: int = 1) -> list[Seat]:
    """The seats of a new service."""
    ports, common, secret = [free_port() for _ in range(count)], free_port(), secrets.token_hex(16)
    return [Seat(number, ports, common, secret) for number in range(1, count + 1)]


def node_name(kind: str, number: int) -> str:
    """The name of a node of several, in commands."""
    return f"{kind}-{number}"


def kind_of(name: str) -> str:
    """The service that a node is of, by its name."""
    return name.partition("-")[0]
