"""The policy: which profile the mail of a next hop has. Pure.

*Rules*
- The `<tls>` of the relay counts; without it that of the first `<destination>` that matches the recipient's domain, with or
  without a relay; without it that of `<client>`.
- At `verify` the names are those of `name`; without them a relay's host name or address, and without a relay the
  recipient's domain and the hosts below it. Below `verify` no name counts, so all domains have one profile.

*Not here*: what is done to meet a requirement (`deliver.sessions.host_session`, `net.tls_client`), MX names (`profile`).
"""

from __future__ import annotations

from mailismus.config.values.settings import DeliverSettings, RelaySettings
from mailismus.config.values.tls import TlsLevel, TlsSettings
from mailismus.deliver.limits.domains import Destinations
from mailismus.deliver.security.profile import NO_NAMES, Profile, Profiles, ReferenceNames, Requirement
from mailismus.dns.name import to_ascii

MAX_KNOWN = 10_000
"""Domains whose profile is remembered."""


def requirement_of(tls: TlsSettings, relay_host: str, domain: str) -> Requirement:
    """What a host must show by these settings. `relay_host`: its name or address; `""`: the host is an MX host of `domain`,
    which is lower case and in A-labels, or an address literal."""
    names = NO_NAMES
    if tls.level is TlsLevel.VERIFY:
        if tls.names:
            names = ReferenceNames(tls.names)
        elif relay_host:
            names = ReferenceNames((relay_host,))
        elif domain.startswith("["):
            names = ReferenceNames((domain[1:-1].removeprefix("ipv6:"),))
        else:
            names = ReferenceNames(domain=domain)
    return Requirement(
        level=tls.level,
        demanded_by=tls.demanded_by,
        names=names,
        server_name=tls.names[0] if tls.names else "",
        minversion=tls.minversion,
        trust=tls.trust,
        certificate=tls.certificate,
        is_immediate=tls.is_immediate,
    )


class TlsPolicy:
    """The policy of one configuration. `profiles` may have served others before."""

    def __init__(self, settings: DeliverSettings, profiles: Profiles) -> None:
        self._client = settings.client.tls
        self._destinations = Destinations(settings.destinations)
        self._profiles = profiles
        self._known: dict[tuple[int, bytes], tuple[Profile, RelaySettings | None]] = {}
        """By the identity of the relay, and domain."""

    def of_domain(self, domain: bytes) -> Profile:
        """The profile of the mail of this domain (lower case) for its MX hosts."""
        return self._find(domain, None)

    def of_relay(self, relay: RelaySettings, domain: bytes) -> Profile:
        """The profile of the mail of this domain for a relay."""
        return self._find(domain, relay)

    def _find(self, domain: bytes, relay: RelaySettings | None) -> Profile:
        key = id(relay), domain
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            host = "" if relay is None else relay.host.lower()
            name = domain.decode("utf-8", "replace")
            requirement = requirement_of(self._settings_of(relay, domain), host, to_ascii(name) or name)
            known = self._known[key] = self._profiles.of(requirement, None if relay is None else relay.auth), relay
        return known[0]

    def _settings_of(self, relay: RelaySettings | None, domain: bytes) -> TlsSettings:
        if relay is not None and relay.tls is not None:
            return relay.tls
        destination = self._destinations.find(domain)
        if destination is not None and destination.tls is not None:
            return destination.tls
        return self._client
