"""Assembling, part 2: the rules that route, checked against each other.

*Rules*: a recipient's domain, a sender or a sender's domain stands in one relay only, and only one relay is the default, for
it would be ambiguous otherwise. Every error names both lines.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from mailismus.config.read.check import Given
from mailismus.config.table import deliver as dlv
from mailismus.config.table.auth import AUTH
from mailismus.config.table.tls import RELAY_TLS
from mailismus.config.values.auth import AuthSettings
from mailismus.config.values.settings import RelaySettings
from mailismus.config.values.tls import TlsSettings
from mailismus.errors import ConfigError
from mailismus.mail.networks import Networks

SUBMISSIONS_PORT = 465
"""The default port of a relay with TLS from the start (RFC 8314 3.3)."""
SMTP_PORT = 25


def assemble_relays(
    relays: Given,
    file: str,
    read_tls: Callable[[Given | None, bool, int], TlsSettings | None],
    read_auth: Callable[[Given | None], AuthSettings | None],
) -> tuple[RelaySettings, ...]:
    """The relays in the order of the file. `read_tls`, `read_auth`: as `TlsReader.read`, `AuthReader.read`. Raises
    `ConfigError`."""
    found = []
    homes: dict[tuple[str, str], int] = {}
    default_line = 0
    for relay in relays.all(dlv.RELAY):
        domains, senders, networks = relay.get(dlv.DESTDOMAINS), relay.get(dlv.SENDERS), relay.get(dlv.SENDERNETS)
        if networks and not senders:
            raise ConfigError(
                file, relay.line, "this relay has sendernets but no senders: write senders, or remove sendernets"
            )
        if not domains and not senders:
            if default_line:
                raise ConfigError(
                    file,
                    relay.line,
                    f"this is a second default relay, the first is in line {default_line}: remove one, or write destdomains "
                    "or senders",
                )
            default_line = relay.line
        for name, items in (("destdomains", domains), ("senders", senders)):
            for item in items:
                if (name, item) in homes:
                    raise ConfigError(
                        file,
                        relay.line,
                        f'"{item}" stands in {name} twice, in line {homes[name, item]} too: leave it in one relay only',
                    )
                homes[name, item] = relay.line
        auth_block = next(iter(relay.all(AUTH)), None)
        tls = read_tls(next(iter(relay.all(RELAY_TLS)), None), True, auth_block.line if auth_block else 0)
        host, port = relay.get(dlv.ADDRESS)
        if not port:
            port = SUBMISSIONS_PORT if tls is not None and tls.is_immediate else SMTP_PORT
            relay.values[dlv.ADDRESS.key] = attrs.evolve(relay.values[dlv.ADDRESS.key], value=(host, port))
        found.append(
            RelaySettings(
                address=dlv.ADDRESS.kind.show((host, port)),
                host=host,
                port=port,
                destdomains=tuple(domain.encode("ascii") for domain in domains),
                senders=tuple(sender.encode("ascii") for sender in senders),
                sendernets=Networks.of(networks) if networks else None,
                line=relay.line,
                tls=tls,
                auth=read_auth(auth_block),
            )
        )
    return tuple(found)
