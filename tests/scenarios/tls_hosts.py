"""Hosts with TLS for a delivering task over real sockets, and what its log says of them."""

from __future__ import annotations

from typing import Any

from twisted.internet.error import CannotListenError

from mailismus.deliver.routes.locator import Locator
from mailismus.dns.mx import MxHost
from tests.deliver.harness import Names
from tests.fakes.tls_sink import TlsSinkFactory
from tests.scenarios.deliver_server import DeliverServer

ATTEMPTS = 20
"""Ports that are tried, at most."""


def listen(server: DeliverServer, *factories: TlsSinkFactory) -> int:
    """A port at which the sinks listen, each at an address of its own: 127.0.0.1, 127.0.0.2 and so on."""
    for _ in range(ATTEMPTS):
        ports: list[Any] = []
        try:
            for number, factory in enumerate(factories, 1):
                port_number = ports[0].getHost().port if ports else 0
                ports.append(server.reactor.listenTCP(port_number, factory, interface=f"127.0.0.{number}"))
        except CannotListenError:
            for port in ports:  # another program has this port at a later address
                port.stopListening()
            continue
        server.ports += ports
        return int(ports[0].getHost().port)
    raise AssertionError("no port is free at all addresses")


def route(server: DeliverServer, hosts: int, *domains: str, name: str = "", is_secure: bool = False) -> Names:
    """MX hosts of each domain, of descending preference. `name`: of the first, for all domains; `is_secure`: by DNSSEC."""
    names = Names()
    for domain in domains:
        names.domains[domain] = tuple(
            MxHost(name or f"mx{number}.{domain}", number, (f"127.0.0.{number}",), is_secure)
            for number in range(1, hosts + 1)
        )
    names.hosts["relay.example"] = ("127.0.0.1",)
    server.locator = Locator(names, names)
    return names


def fields_of(line: bytes) -> dict[str, str]:
    """The fields of a log line, and its reply."""
    head, _, reply = line.decode("ascii").partition(" (")
    fields = dict(field.partition("=")[::2] for field in head.partition(": ")[2].split(", "))
    return {**fields, "reply": reply.removesuffix(")")}
