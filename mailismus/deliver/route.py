"""The route of a recipient: kept here, handed to a relay, sent to its domain's hosts, or nowhere (pure).

*Rules*: a local domain first. Then the relay whose `senders` name the exact sender, then the one whose `senders` name the
sender's domain, each only if the client's address is in its `sendernets`; then the relay whose `destdomains` name the
recipient's domain exactly; then the default relay; then MX. Case is ignored. The null reverse-path has no sender's relay;
mail that was made here is in every network. A route permits nobody anything: whether we take mail is decided where it is
submitted. A route is looked up anew at each attempt, so that a mended configuration frees what waits.

*Not here*: addresses of relays and MX hosts (`locator`), limits (`schedule`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

import attrs

from mailismus.config.values.settings import RelaySettings
from mailismus.mail.address import domain_of
from mailismus.mail.directory import Directory
from mailismus.mail.networks import Networks
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply

NOBODY = b"none"
"""The host of an outcome that no host gave."""

UNKNOWN_USER = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.1", b"no such user here"), b"local")


@attrs.frozen
class Local:
    """Into the maildir of this user."""

    user: bytes


class HostFinding(enum.Enum):
    """How the hosts of a next hop are found."""

    ADDRESS = "address"
    """It is a host: an IP address, or a name that has some."""
    MX = "mx"
    """It is a domain, by its MX records, or an address literal in brackets."""

    __hash__ = object.__hash__  # of the identity: an enum's own is slow, and next hops are keys on every message's path


class NextHop(NamedTuple):
    """To this relay, or to the hosts of this domain. A tuple, for it is a key on every message's path."""

    host: str
    port: int
    finding: HostFinding = HostFinding.ADDRESS


Route = Local | NextHop | Outcome


@attrs.frozen
class _SenderRule:
    """A relay for some senders; `networks` None: from everywhere."""

    next_hop: NextHop
    networks: Networks | None

    def is_for(self, client: bytes) -> bool:
        """Whether it takes mail that came from there."""
        return self.networks is None or client == b"-" or client.decode("ascii", "replace") in self.networks


class Router:
    """The routes that one configuration gives. `mx_port`: the port of hosts that no relay rule names."""

    def __init__(self, directory: Directory, relays: Iterable[RelaySettings], mx_port: int) -> None:
        self._directory = directory
        self._mx_port = mx_port
        self._by_sender: dict[bytes, _SenderRule] = {}
        self._by_domain: dict[bytes, NextHop] = {}
        self._default: NextHop | None = None
        for relay in relays:
            next_hop = NextHop(relay.host.lower(), relay.port)
            for domain in relay.destdomains:
                self._by_domain[domain.lower()] = next_hop
            for sender in relay.senders:
                self._by_sender[sender.lower()] = _SenderRule(next_hop, relay.sendernets)
            if not relay.destdomains and not relay.senders:
                self._default = next_hop

    def route(self, recipient: bytes, sender: bytes = b"", client: bytes = b"-") -> Route:
        """Where this recipient goes now; an Outcome if nowhere. `client`: as the entry's message has it."""
        domain = domain_of(recipient)
        if domain in self._directory.domains or not domain:
            user = self._directory.user_of(recipient) if self._directory.is_local(recipient) else None
            return UNKNOWN_USER if user is None else Local(user)
        if sender and self._by_sender:
            for key in (sender.lower(), domain_of(sender)):
                rule = self._by_sender.get(key)
                if rule is not None and rule.is_for(client):
                    return rule.next_hop
        next_hop = self._by_domain.get(domain, self._default)
        return next_hop or NextHop(domain.decode("ascii"), self._mx_port, HostFinding.MX)
