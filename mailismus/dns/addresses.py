"""Addresses of mail hosts: which addresses are refused, whatever a zone says, and the order of the others.

*Rules*: refused are this host (127/8, ::1), no host (0/8, ::), link-local (169.254/16, fe80::/10), multicast (224/4,
ff00::/8) and broadcast (255.255.255.255), also where IPv6 maps or embeds the IPv4 address. A zone that names them would make
us connect to ourselves or to neighbours. Loopback may be allowed for test beds. Private networks are allowed.

*Not here*: our own addresses (`choice`), relays: they may have any address. RFC 6890, RFC 5735.
"""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Iterable
from itertools import zip_longest

from mailismus.dns.randomness import RandomSource


class Loopback(enum.Enum):
    """`<loopback>`: whether an MX host may be at 127/8 or ::1."""

    REFUSED = "N"
    ALLOWED = "Y"


_LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")
_REFUSED_V4 = tuple(map(ipaddress.IPv4Network, ("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32")))
_REFUSED_V6 = tuple(map(ipaddress.IPv6Network, ("::/96", "fe80::/10", "ff00::/8")))
_LOOPBACK_V6 = ipaddress.IPv6Address("::1")


def is_address(host: str) -> bool:
    """Whether a host is named by its IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def to_destination(address: str, loopback: Loopback) -> str | None:
    """The address in its plain form, a mapped one as IPv4; None: it is refused, or is no address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif found == _LOOPBACK_V6:
            return str(found) if loopback is Loopback.ALLOWED else None
        elif found.scope_id is not None or any(found in block for block in _REFUSED_V6):
            return None
        else:
            return str(found)
    if found in _LOOPBACK:
        return str(found) if loopback is Loopback.ALLOWED else None
    return None if any(found in block for block in _REFUSED_V4) else str(found)


def order_addresses(v4: Iterable[str], v6: Iterable[str], random: RandomSource) -> tuple[str, ...]:
    """All addresses, each family shuffled, the families in turn, IPv4 first. If one family is unreachable, every second
    address still works."""
    shuffled = (sorted(dict.fromkeys(family), key=lambda _: random.random()) for family in (v4, v6))
    return tuple(dict.fromkeys(address for pair in zip_longest(*shuffled) for address in pair if address is not None))
