"""The world that the server delivers to: hosts with their behaviour, domains with their MX hosts (pure).

All hosts are at addresses of 127/8 and one port. The sink plays those that listen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import attrs

DOMAIN = "load.example"


@attrs.frozen
class Behaviour:
    """What a host is like."""

    reply_s: float = 0.0
    """Time that each reply takes, one after the other, whatever was sent ahead; the greeting comes at once."""
    distance_s: float = 0.0
    """Time of a round trip to it: what was sent together is answered together, so much later."""
    cap: int = 0
    """Connections that it takes, 421 above; 0: all."""
    is_mute: bool = False
    """It takes connections and never says a word."""
    listens: bool = True
    """Nobody listens: connections are refused."""


HEALTHY = Behaviour()
TARPIT = Behaviour(reply_s=30.0)
MUTE = Behaviour(is_mute=True)
REFUSING = Behaviour(listens=False)
CAPPED = Behaviour(cap=3)


@attrs.frozen
class Host:
    """A host, and the domains whose only MX host it is."""

    address: str
    behaviour: Behaviour
    domains: tuple[str, ...]

    @property
    def domain(self) -> str:
        """The first of them."""
        return self.domains[0]


def address(group: int, index: int) -> str:
    """An address of 127/8 for each group (1 to 254) and index (0 to 62,499)."""
    return f"127.{group}.{index // 250}.{1 + index % 250}"


def hosts(name: str, group: int, count: int, behaviour: Behaviour) -> list[Host]:
    """So many hosts, each with a domain of its own."""
    return [Host(address(group, index), behaviour, (f"{name}{index}.{DOMAIN}",)) for index in range(count)]


def zone(known: Iterable[Host], silent: Sequence[str] = ()) -> str:
    """For the name server; it never answers questions for the `silent` domains."""
    lines = []
    for host in known:
        lines += [f"{domain} MX 10 mx.{host.domain}" for domain in host.domains]
        lines.append(f"mx.{host.domain} A {host.address}")
    lines += [f"{domain} * !drop" for domain in silent]
    return "".join(f"{line}\n" for line in lines)


def table(known: Iterable[Host]) -> str:
    """For the sink: the behaviour by address of the hosts that listen."""
    return json.dumps({host.address: attrs.asdict(host.behaviour) for host in known if host.behaviour.listens})


def parse_table(text: str) -> dict[str, Behaviour]:
    """The table again."""
    return {at: Behaviour(**values) for at, values in json.loads(text).items()}
