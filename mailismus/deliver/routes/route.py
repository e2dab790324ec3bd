"""The route of a recipient: a local user, a local domain's LMTP server, a relay, its domain's mail hosts, or none (pure).

*Rules*: of an entry that an act redirected to another recipient that one counts. The first match decides: the relay that an
act redirected the entry to; a local domain, whose mail goes to the LMTP
server if there is one; the relay whose `senders` name the exact sender; the relay whose `senders` name the sender's domain;
the relay whose `destdomains` name the recipient's domain exactly; the default relay; MX. An LMTP server decides about local
users: none is unknown here then. A relay for senders matches only if the client's address is in its `sendernets`. Case is
ignored. The null reverse-path matches no `senders`; mail made here is in every network. A route grants no permission:
reception decides which mail is taken. Each attempt looks up the route again, so a corrected configuration applies to
waiting mail.

A next hop has the profile that `security.policy` gives: next hops that differ in it share no connection. Mail through a
relay that has the limits of a `<destination>` has a next hop of its own.

*Not here*: addresses of relays and MX hosts (`locator`), limits (`schedule`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import attrs

from mailismus.config.values.names import parse_host_port
from mailismus.config.values.settings import LmtpSettings, RelaySettings
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.limits.domains import NO_DESTINATIONS, Destinations
from mailismus.deliver.mailboxes import Mailboxes
from mailismus.deliver.security.policy import TlsPolicy
from mailismus.deliver.security.profile import PLAIN, Profile, Profiles, Requirement
from mailismus.mail.address import domain_of
from mailismus.mail.directory import Directory
from mailismus.mail.networks import Networks
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Entry, Message
from mailismus.queue.redirect import DEFAULT_PORT, final_recipient, relay_of

HOST_NONE = b"none"
"""The host of an outcome that came from no host."""

MAX_KNOWN = 10_000
"""Domains, and relays, whose next hop is remembered."""

MAX_REDIRECTS = 100
"""Relays of redirections that are remembered."""

UNKNOWN_USER = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.1", b"no such user here"), b"local")

NO_DOMAIN = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.2", b"the domain of the address can't be one"), HOST_NONE)


@attrs.frozen
class Local:
    """Deliver into the maildir of this user."""

    user: bytes


class HostFinding(enum.Enum):
    """How the hosts of a next hop are found."""

    ADDRESS = "address"
    """A host: an IP address, or a name with addresses."""
    MX = "mx"
    """A domain, by its MX records, or an address literal in brackets."""
    SOCKET = "socket"
    """A Unix socket of this host: its path stands in the place of the address, and the port is 0."""

    __hash__ = object.__hash__  # by identity: an enum's own hash is slow, and next hops are keys in the hot path


class NextHop(NamedTuple):
    """A relay, an LMTP server, or a domain for its mail hosts. A tuple, because it is a key in the hot path."""

    host: str
    port: int
    finding: HostFinding = HostFinding.ADDRESS
    profile: Profile = PLAIN
    """What it must show. Next hops that differ in it share no connection."""
    limited_as: tuple[bytes, ...] = ()
    """Of a relay: the patterns of the `<destination>` whose limits this mail has; empty: none. A domain tells its own."""


Route = Local | NextHop | Outcome


@attrs.frozen
class _SenderRule:
    """A relay for some senders; `networks` None: from all clients."""

    relay: RelaySettings
    networks: Networks | None

    def is_for(self, client: bytes) -> bool:
        """Whether the relay takes mail from this client."""
        return self.networks is None or client == b"-" or client.decode("ascii", "replace") in self.networks


def lmtp_hop(server: LmtpSettings, directory: Directory, profiles: Profiles) -> NextHop:
    """The next hop of local mail that goes to an LMTP server."""
    finding = HostFinding.ADDRESS if server.port else HostFinding.SOCKET
    profile = profiles.of(Requirement(TlsLevel.NONE, "LMTP"), None, Mailboxes(directory))
    return NextHop(server.host, server.port, finding, profile)


class Router:
    """The routes of one configuration. `mx_port`: the port of hosts that no relay rule names. `policy` None: no TLS."""

    def __init__(
        self,
        directory: Directory,
        relays: Iterable[RelaySettings],
        mx_port: int,
        policy: TlsPolicy | None = None,
        destinations: Destinations = NO_DESTINATIONS,
        lmtp: NextHop | None = None,
    ) -> None:
        """`lmtp`: the server that takes all local mail; None: it goes into maildirs."""
        self._directory = directory
        self._lmtp = lmtp
        self._mx_port = mx_port
        self._policy = policy
        self._destinations = destinations
        self._by_sender: dict[bytes, _SenderRule] = {}
        self._by_domain: dict[bytes, RelaySettings] = {}
        self._default: RelaySettings | None = None
        self._relay_hops: dict[tuple[str, int, Profile, tuple[bytes, ...]], NextHop] = {}
        """By host, port, profile, and limits: one object for all domains."""
        self._named: dict[tuple[str, int], RelaySettings] = {}
        """The first relay of each host and port: mail that is redirected there shows it what the relay's rule says."""
        self._known: dict[bytes, NextHop] = {}
        """Next hops of domains as they were written, with the `@`, where no sender's rule can decide."""
        for relay in relays:
            self._named.setdefault((relay.host.lower(), relay.port), relay)
            for domain in relay.destdomains:
                self._by_domain[domain.lower()] = relay
            for sender in relay.senders:
                self._by_sender[sender.lower()] = _SenderRule(relay, relay.sendernets)
            if not relay.destdomains and not relay.senders:
                self._default = relay

    def split(self, message: Message) -> tuple[dict[NextHop, list[Entry]], list[tuple[Entry, Local | Outcome]]]:
        """Return the entries of a message by next hop, in order, and those that have no next hop, with their routes."""
        entries = message.entries
        first = entries[0].recipient
        domain = first[first.rfind(b"@") :]
        if domain[:1] == b"@" and not [
            entry for entry in entries if entry.words is not None or not entry.recipient.endswith(domain)
        ]:
            route = self.route(first, message.sender, message.client)
            if isinstance(route, NextHop):
                return {route: entries}, []  # the usual case: all recipients are of one domain
        by_hop: dict[NextHop, list[Entry]] = {}
        others: list[tuple[Entry, Local | Outcome]] = []
        group: list[Entry] = []
        of_group: bytes | None = None
        """The domain of the entries in `group`, as it is written, with its `@`: the bare postmaster has none."""
        for entry in entries:
            recipient = entry.recipient
            domain = recipient[recipient.rfind(b"@") :]
            if domain != of_group or entry.words is not None:
                route = self.route(recipient, message.sender, message.client, entry.words)
                if not isinstance(route, NextHop):
                    others.append((entry, route))
                    continue
                group = by_hop.setdefault(route, [])
                of_group = domain if entry.words is None else None
            group.append(entry)
        return by_hop, others

    def route(self, recipient: bytes, sender: bytes = b"", client: bytes = b"-", words: bytes | None = None) -> Route:
        """The route of this recipient now; an Outcome if there is none. `client`: as in the entry's message. `words`: those
        of the entry, which may name a relay or another recipient that an act redirected it to."""
        if words is not None:
            recipient = final_recipient(recipient, words)
            if (name := relay_of(words)) is not None:
                named = _relay_named(name)
                return self._next_hop(self._named.get((named.host, named.port), named), domain_of(recipient))
        written = recipient[recipient.rfind(b"@") :]
        known = self._known.get(written)
        if known is not None:
            return known
        domain = domain_of(recipient)
        if domain in self._directory.domains or not domain:
            if self._lmtp is not None:
                return self._lmtp
            user = self._directory.owner_of(recipient)
            return Local(user) if user else UNKNOWN_USER
        if sender and self._by_sender:
            for key in (sender.lower(), domain_of(sender)):
                rule = self._by_sender.get(key)
                if rule is not None and rule.is_for(client):
                    return self._next_hop(rule.relay, domain)
        relay = self.relay_of(domain)
        if relay is None and not domain.isascii():
            return NO_DOMAIN
        next_hop = self._next_hop(relay, domain)
        if not self._by_sender:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[written] = next_hop
        return next_hop

    def relay_of(self, domain: bytes) -> RelaySettings | None:
        """The relay for mail to a domain (lower case) that no sender's rule routes; None: it goes by MX."""
        return self._by_domain.get(domain, self._default)

    def _next_hop(self, relay: RelaySettings | None, domain: bytes) -> NextHop:
        """The next hop of the mail of a domain by this relay, or without one."""
        policy = self._policy
        if relay is None:
            profile = PLAIN if policy is None else policy.of_domain(domain)
            return NextHop(domain.decode("ascii"), self._mx_port, HostFinding.MX, profile)
        profile = PLAIN if policy is None else policy.of_relay(relay, domain)
        destination = self._destinations.find(domain)
        limited_as = destination.domains if destination is not None and destination.has_limits else ()
        key = relay.host, relay.port, profile, limited_as
        known = self._relay_hops.get(key)
        if known is None:
            if len(self._relay_hops) >= MAX_KNOWN:
                self._relay_hops.clear()
            known = NextHop(relay.host.lower(), relay.port, HostFinding.ADDRESS, profile, limited_as)
            self._relay_hops[key] = known
        return known


@lru_cache(MAX_REDIRECTS)
def _relay_named(relay: str) -> RelaySettings:
    """The relay of a redirection, as if a rule without conditions of its own named it."""
    return RelaySettings(relay, *parse_host_port(relay, DEFAULT_PORT), (), (), None, 0)
