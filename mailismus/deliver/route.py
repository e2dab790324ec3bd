"""The route of a recipient: kept here, handed to a relay, or nowhere (pure).

*Rules*: a local domain first; then the relay whose `destdomains` name the recipient's domain exactly, case ignored; then the
default relay. There is no delivery by MX in this version: what none of these takes is deferred and says so. A route is
looked up anew at each attempt, so that a repaired configuration repairs what waits.

*Not here*: addresses of relays (`resolver`), limits (`schedule`).
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from mailismus.config.settings import RelaySettings
from mailismus.mail.address import domain_of
from mailismus.mail.directory import Directory
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply

NOBODY = b"none"
"""The host of an outcome that no host gave."""

UNKNOWN_USER = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.1", b"no such user here"), b"local")
NO_ROUTE = Outcome(
    OutcomeKind.DEFERRED,
    Reply(451, b"4.4.4", b"no route: MX delivery is not available in this version; configure a default relay"),
    NOBODY,
)


@attrs.frozen
class Local:
    """Into the maildir of this user."""

    user: bytes


@attrs.frozen(cache_hash=True)
class NextHop:
    """To this relay: a name or an address, and a port."""

    host: str
    port: int


Route = Local | NextHop | Outcome


class Router:
    """The routes that one configuration gives."""

    def __init__(self, directory: Directory, relays: Iterable[RelaySettings]) -> None:
        self._directory = directory
        self._by_domain: dict[bytes, NextHop] = {}
        self._default: NextHop | None = None
        for relay in relays:
            next_hop = NextHop(relay.host.lower(), relay.port)
            for domain in relay.destdomains:
                self._by_domain[domain.lower()] = next_hop
            if not relay.destdomains:
                self._default = next_hop

    def route(self, recipient: bytes) -> Route:
        """Where this recipient goes now; an Outcome if nowhere."""
        domain = domain_of(recipient)
        if domain in self._directory.domains or not domain:
            user = self._directory.user_of(recipient) if self._directory.is_local(recipient) else None
            return UNKNOWN_USER if user is None else Local(user)
        return self._by_domain.get(domain, self._default) or NO_ROUTE
