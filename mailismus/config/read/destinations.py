"""Assembling, part 3: the destinations, whose first match counts, checked against each other.

*Rules*: a pattern stands in one destination only, and once: a second one would never match. A pattern that an earlier,
wider one covers is advice (`config.advice.delivery`). Every error names both lines.
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.config.read.check import Given
from mailismus.config.table import deliver as dlv
from mailismus.config.table.tls import DESTINATION_TLS
from mailismus.config.values.settings import DestinationSettings
from mailismus.config.values.tls import TlsSettings
from mailismus.errors import ConfigError


def assemble_destinations(
    destinations: Given, file: str, read_tls: Callable[[Given | None], TlsSettings | None]
) -> tuple[DestinationSettings, ...]:
    """The destinations in the order of the file. `read_tls`: as `TlsReader.read`. Raises `ConfigError`."""
    found = []
    homes: dict[str, int] = {}
    for destination in destinations.all(dlv.DESTINATION):
        domains = destination.get(dlv.DESTINATION_DOMAINS)
        for domain in domains:
            if domain in homes:
                raise ConfigError(
                    file,
                    destination.line,
                    f'"{domain}" stands in domains twice, in line {homes[domain]} too, and the first one counts: leave it '
                    "in one destination only, once",
                )
            homes[domain] = destination.line
        found.append(
            DestinationSettings(
                domains=tuple(domain.encode("ascii") for domain in domains),
                maxserverconnections=destination.get(dlv.DESTINATION_MAXSERVERCONNECTIONS),
                messages_per_minute=destination.get(dlv.DESTINATION_MESSAGES_PER_MINUTE),
                recipients_per_minute=destination.get(dlv.DESTINATION_RECIPIENTS_PER_MINUTE),
                line=destination.line,
                tls=read_tls(next(iter(destination.all(DESTINATION_TLS)), None)),
            )
        )
    return tuple(found)
