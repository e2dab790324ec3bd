"""The peer: its address as text, as a literal, and as the key of connection limits.

*Rules*: an IPv4 address mapped into IPv6 (`::ffff:192.0.2.1`) counts as that IPv4 address; a scope (`%eth0`) is dropped.
Where there is no IP address (a test's transport) the text is `unknown`.
"""

from __future__ import annotations

import socket

from twisted.internet.interfaces import ITransport

UNKNOWN = "unknown"


def peer_host(transport: ITransport) -> str:
    """The peer's IP address, or `"unknown"`."""
    client = getattr(transport, "client", None)  # from accept(): avoids an address object
    host = client[0] if client else getattr(transport.getPeer(), "host", UNKNOWN)
    return plain_host(host) if isinstance(host, str) else UNKNOWN


def plain_host(host: str) -> str:
    """An IP address without mapping and scope."""
    if ":" not in host:
        return host
    if host.startswith("::ffff:") and "." in host:
        return host[7:]
    return host.partition("%")[0]


def literal_of(host: str) -> bytes:
    """The address literal of RFC 5321 4.1.3: `[192.0.2.1]`, `[IPv6:2001:db8::1]`."""
    return (f"[IPv6:{host}]" if ":" in host else f"[{host}]").encode("ascii", "replace")


def counted_as(host: str) -> str | bytes:
    """The key under which connections of this host are counted: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in host:
        return host
    try:
        return socket.inet_pton(socket.AF_INET6, host)[:8]
    except OSError:
        return host


def set_no_delay(transport: ITransport) -> None:
    """Send small writes at once (no Nagle), if the transport is TCP."""
    set_option = getattr(transport, "setTcpNoDelay", None)
    if set_option is not None:
        set_option(True)
