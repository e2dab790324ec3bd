"""Assembly: the locator of a configuration, with the resolvers that it asks."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import Settings
from mailismus.deliver.routes.locator import Locator
from mailismus.dns.addresses import Loopback
from mailismus.dns.choice import Fallback
from mailismus.dns.client import DnsClient
from mailismus.dns.counters import DnsCounters
from mailismus.dns.hosts import HostResolver
from mailismus.dns.mx import MxPolicy, MxResolver
from mailismus.dns.servers import NameServer
from mailismus.dns.sockets import DnsReactor
from mailismus.dns.system import SystemHosts, SystemServers, is_local_address


def locator_of(
    settings: Settings,
    reactor: DnsReactor,
    clock: IReactorTime,
    bound: Sequence[tuple[str, str, int]],
    counters: DnsCounters,
) -> Locator:
    """A locator of the hosts of relays and domains, with an empty cache. `bound`: the addresses that this server listens on;
    `counters`: where its questions are counted; `reactor`: one whose timers do not jump with the time of day."""
    dns, client = settings.deliver.dns, settings.deliver.client
    named = tuple(NameServer(host, port, dns.are_trusted) for host, port in dns.servers)
    chance = random.SystemRandom()
    servers = (lambda: named) if named else SystemServers(time.monotonic, are_trusted=dns.are_trusted)
    resolver = DnsClient(reactor, servers, dns.timeout_s, chance, time.monotonic, counters=counters)
    policy = MxPolicy(
        fallback=Fallback.ADDRESS if client.fallback_a else Fallback.NONE,
        loopback=Loopback.ALLOWED if client.loopback else Loopback.REFUSED,
        port=client.mxport,
        own_names=frozenset((settings.application.announcehost.decode("ascii").lower(),)),
        own_endpoints=frozenset((host, port) for _, host, port in bound),
        is_local=is_local_address,
    )
    hosts = HostResolver(resolver, SystemHosts(time.monotonic), chance)
    return Locator(hosts, MxResolver(resolver, policy, clock, chance), resolver.forget, resolver.press)
