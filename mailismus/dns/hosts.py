"""The resolver of host names: the hosts file first, then A and AAAA records. For relays, which may have any address.

*Rules*: a name in the hosts file is not queried. The names come from the configuration, so a name that does not exist is a
local error, and temporary. Addresses are in the order of trial, each family shuffled.

*Not here*: MX records (`mx`), search lists, nsswitch.conf.
"""

from __future__ import annotations

import ipaddress

from dns.rdatatype import RdataType
from twisted.internet.defer import Deferred

from mailismus.dns.addresses import order_addresses
from mailismus.dns.answer import Status
from mailismus.dns.choice import defer
from mailismus.dns.client import DnsClient
from mailismus.dns.name import to_ascii
from mailismus.dns.randomness import RandomSource
from mailismus.dns.system import SystemHosts
from mailismus.mail.networks import unmapped
from mailismus.mail.outcome import Outcome


class HostResolver:
    """Finds addresses of hosts. `random`: shuffles addresses."""

    def __init__(self, client: DnsClient, hosts: SystemHosts, random: RandomSource) -> None:
        self._client, self._hosts, self._random = client, hosts, random

    def find(self, host: str) -> Deferred[tuple[str, ...] | Outcome]:
        """The addresses of a host, at least one, or why there are none now. Never fails; may be cancelled."""
        return Deferred.fromCoroutine(self._find(host))

    def known(self, host: str) -> tuple[str, ...] | Outcome | None:
        """The same, by the hosts file or cached answers; None: they do not tell."""
        return self._client.find_cached(lambda: Deferred.fromCoroutine(self._find(host)))

    async def _find(self, host: str) -> tuple[str, ...] | Outcome:
        name = to_ascii(host)
        if name is None:
            return defer(f"{host} is no name of a host")
        known = self._hosts.addresses(name)
        if known:
            return known
        v4, v6 = await self._client.query_all(((name, RdataType.A), (name, RdataType.AAAA)))
        addresses = order_addresses(v4.addresses, map(_plain, v6.addresses), self._random)
        if addresses:
            return addresses
        reason = next((answer for answer in (v4, v6) if answer.status in (Status.FAILED, Status.NO_NAME)), None)
        return defer(f"no address for {name}: {reason.text if reason else f'{v4.text}, {v6.text}'}")


def _plain(address: str) -> str:
    return str(unmapped(ipaddress.ip_address(address)))
