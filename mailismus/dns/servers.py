"""The name servers: their addresses, and the order in which they are asked (pure).

*Rules*: servers are asked in the order of the configuration. Servers that timed out while another answered, or that can't be
reached, move to the end of the list for `DEAD_S`, which doubles up to `MAX_DEAD_S`. After that time one question tries such
a server first; all others keep the old order until it has answered. A server that answers is in order again. No server is
dropped: when all others fail, dead ones are asked too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

import attrs

from mailismus.mail.networks import unmapped

DNS_PORT = 53
DEAD_S = 30.0
MAX_DEAD_S = 900.0


@attrs.frozen(cache_hash=True)
class NameServer:
    """One name server: an IP address (IPv6 with its scope, if it needs one), and a port. `is_trusted`: the configuration
    says that its AD flag counts."""

    host: str
    port: int = DNS_PORT
    is_trusted: bool = False

    @property
    def is_ipv6(self) -> bool:
        """Whether its address is IPv6."""
        return ":" in self.host

    @property
    def is_believed(self) -> bool:
        """Whether it is believed that DNSSEC authenticates its answers: it is on this host, or trusted."""
        return self.is_trusted or ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"


def parse_server(text: str) -> NameServer | None:
    """The server in a text `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[2001:db8::1]:5353`; None: in no such text."""
    host, colon, port = text, "", ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return None
        colon, port = rest[:1], rest[1:]
    elif text.count(":") == 1:
        host, colon, port = text.partition(":")
    if colon and not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        return None
    try:
        address = unmapped(ipaddress.ip_address(host))
    except ValueError:
        return None
    return NameServer(str(address), int(port) if colon else DNS_PORT)


def trusted(servers: Iterable[NameServer]) -> tuple[NameServer, ...]:
    """The same servers, with AD flags that count."""
    return tuple(attrs.evolve(server, is_trusted=True) for server in servers)


@attrs.define
class _Mark:
    """State of a dead server."""

    until: float
    dead_s: float
    is_tried: bool = False


class ServerStates:
    """The known state of the servers. Times are seconds of one clock that never jumps."""

    def __init__(self) -> None:
        self._marks: dict[NameServer, _Mark] = {}

    def order(self, servers: Sequence[NameServer], now: float) -> list[NameServer]:
        """The order in which one question asks the servers."""
        if len(servers) < 2:
            return list(servers)
        marks = self._marks
        for server in [server for server in marks if server not in servers]:
            del marks[server]
        alive = [server for server in servers if server not in marks]
        dead = [server for server in servers if server in marks]
        for server in dead:
            mark = marks[server]
            if now >= mark.until:
                mark.until, mark.is_tried = now + mark.dead_s, True
                return [server, *alive, *(other for other in dead if other is not server)]
        return alive + dead

    def note_answer(self, server: NameServer) -> bool:
        """Note an answer. True: the server was dead."""
        return self._marks.pop(server, None) is not None

    def note_failure(self, server: NameServer, now: float) -> bool:
        """Note a time-out while another server answered, or an unreachable server. True: it was not dead."""
        mark = self._marks.get(server)
        if mark is None:
            self._marks[server] = _Mark(now + DEAD_S, DEAD_S)
            return True
        if mark.is_tried:
            mark.dead_s = min(2 * mark.dead_s, MAX_DEAD_S)
            mark.until, mark.is_tried = now + mark.dead_s, False
        return False
