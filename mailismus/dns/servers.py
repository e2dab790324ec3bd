"""The name servers: their addresses, and in which order they are asked (pure).

*Rules*: the order of the configuration, but who was silent while another answered, or has nobody listening, comes last for
`DEAD_S`, doubling to `MAX_DEAD_S` while it stays so. After that time a single question tries it first; all others go on as
before until it has answered. Who answers is as good as new. Nobody is left out for good: when all others fail, the dead are
asked too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import attrs

from mailismus.mail.networks import unmapped

DNS_PORT = 53
DEAD_S = 30.0
MAX_DEAD_S = 900.0


@attrs.frozen(cache_hash=True)
class NameServer:
    """One name server: an IP address (of IPv6 with its scope, if it needs one), and a port."""

    host: str
    port: int = DNS_PORT

    @property
    def is_ipv6(self) -> bool:
        """Whether it is reached over IPv6."""
        return ":" in self.host

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"


def parse_server(text: str) -> NameServer | None:
    """`192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1`, `[2001:db8::1]:5353`; None: it is none of these."""
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


@attrs.define
class _Mark:
    """A server that was found dead."""

    until: float
    dead_s: float
    is_tried: bool = False


class ServerStates:
    """What is known of the servers. Times are of one clock that never jumps, in seconds."""

    def __init__(self) -> None:
        self._marks: dict[NameServer, _Mark] = {}

    def order(self, servers: Sequence[NameServer], now: float) -> list[NameServer]:
        """The servers in the order to ask them, for one question."""
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
        """It lives. Whether that is news."""
        return self._marks.pop(server, None) is not None

    def note_failure(self, server: NameServer, now: float) -> bool:
        """It was silent while another answered, or nobody listens there. Whether that is news."""
        mark = self._marks.get(server)
        if mark is None:
            self._marks[server] = _Mark(now + DEAD_S, DEAD_S)
            return True
        if mark.is_tried:
            mark.dead_s = min(2 * mark.dead_s, MAX_DEAD_S)
            mark.until, mark.is_tried = now + mark.dead_s, False
        return False
