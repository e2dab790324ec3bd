"""The search: every address of every host of a next hop, some at a time, in the order in which the deliverer would try them.

*Not here*: one connection (`session`), how hosts are found (`deliver.routes.locator`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from twisted.internet.defer import Deferred, DeferredSemaphore

from mailismus.dns.mx import MxHost
from mailismus.probe.report import HostReport

AT_ONCE = 8
"""Connections at a time."""
MAX_ADDRESSES = 50
"""Addresses of one next hop that are tried."""

Connect = Callable[[MxHost, str], Deferred[HostReport]]
"""Connects with an address of a host. Never fails."""


async def probe_hosts(hosts: Sequence[MxHost], connect: Connect) -> AsyncIterator[HostReport]:
    """Yield the report of each address."""
    room = DeferredSemaphore(AT_ONCE)
    addresses = [(host, address) for host in hosts for address in host.addresses]
    reports: list[Deferred[HostReport]] = [room.run(connect, host, address) for host, address in addresses[:MAX_ADDRESSES]]
    for report in reports:
        yield await report
