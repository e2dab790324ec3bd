"""The target: the next hop that the words `DOMAIN`, `HOST:PORT` or an IP address mean, by the configuration.

*Rules*
- With a port, or an IP address: that host. A `<relay>` with this address and port is used with its own rules; of several
  the first, and the others are named.
- The host of a `<relay>`, without a port: that relay.
- Else a domain: its mail's route, by a relay for it, the default relay, or MX. Rules for senders do not count: nobody sends.
"""

from __future__ import annotations

import os

import attrs

from mailismus.config.values.names import parse_host_port
from mailismus.config.values.settings import RelaySettings, Settings
from mailismus.config.values.tls import TlsLevel, TlsSettings
from mailismus.config.values.units import UnitError
from mailismus.deliver.routes.route import HostFinding, Local, NextHop, Router
from mailismus.deliver.security.policy import TlsPolicy, requirement_of
from mailismus.deliver.security.profile import NO_NAMES, Profile, Profiles
from mailismus.dns.addresses import is_address
from mailismus.dns.name import to_ascii
from mailismus.errors import StartError
from mailismus.mail.outcome import Outcome

_NO_PORT = 0


@attrs.frozen
class Target:
    """The next hop, and the rule that leads to it. No connection shows credentials."""

    next_hop: NextHop
    route: str
    profiles: Profiles = attrs.Factory(Profiles)

    def profile_at(self, level: TlsLevel) -> Profile:
        """The profile of a connection that demands this level of a host, all else as the configuration says."""
        requirement = self.next_hop.profile.requirement
        if level is not requirement.level:
            names = requirement.names
            if level is TlsLevel.VERIFY and names == NO_NAMES:
                host, is_host = self.next_hop.host, self.next_hop.finding is HostFinding.ADDRESS
                settings = TlsSettings(level)
                names = requirement_of(settings, host if is_host else "", "" if is_host else host).names
            requirement = attrs.evolve(requirement, level=level, names=names)
        return self.profiles.of(requirement)


def find_target(text: str, settings: Settings) -> Target:
    """What the words mean. Raises `StartError`: 64 where they mean nothing, 68 for a domain whose mail stays here."""
    deliver = settings.deliver
    profiles = Profiles()
    policy = TlsPolicy(deliver, profiles)
    host, port = _parse(text)
    relays = [one for one in deliver.relays if one.host.lower() == host and port in (_NO_PORT, one.port)]
    if relays:
        return Target(_relay_hop(relays[0], policy), _title(*relays))
    if port or is_address(host):
        profile = profiles.of(requirement_of(deliver.client.tls, host, ""))
        return Target(NextHop(host, port or deliver.client.mxport, HostFinding.ADDRESS, profile), "this host")
    router = Router(settings.directory, deliver.relays, deliver.client.mxport, policy)
    route = router.route(f"postmaster@{host}".encode())
    if isinstance(route, Local):
        raise StartError(os.EX_NOHOST, f"{host} is one of <domains>: its mail stays on this server")
    if isinstance(route, Outcome):
        raise StartError(os.EX_NOHOST, f"{host}: {bytes(route.reply).decode('ascii', 'replace')}")
    relay = router.relay_of(host.encode())
    return Target(route, "the mail hosts of the domain (MX)" if relay is None else _title(relay))


def _parse(text: str) -> tuple[str, int]:
    """Host or domain in lower case and A-labels, and port; 0: there is none."""
    word = text
    if not text.isascii():
        name, colon, port = text.partition(":")
        word = (to_ascii(name) or name) + colon + port
    try:
        return parse_host_port(word.removesuffix("."), _NO_PORT)
    except UnitError:
        raise StartError(
            os.EX_USAGE,
            f'"{text}" is no host and no domain: write one, as mx.example.net:25, [2001:db8::1]:25 or example.net',
        ) from None


def _relay_hop(relay: RelaySettings, policy: TlsPolicy) -> NextHop:
    return NextHop(relay.host.lower(), relay.port, HostFinding.ADDRESS, policy.of_relay(relay, b""))


def _title(relay: RelaySettings, *others: RelaySettings) -> str:
    lines = ", ".join(str(one.line) for one in others)
    return f"<relay> in line {relay.line}" + (f", the first with this host; others: line {lines}" if others else "")
