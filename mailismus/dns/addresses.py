"""The addresses of mail hosts: which ones no mail may go to, whatever a zone says, and in which order the others are tried.

*Rules*: this host (127/8, ::1), no host (0/8, ::), one network alone (169.254/16, fe80::/10), many (224/4, ff00::/8) and all
(255.255.255.255) are refused, also where IPv6 maps or once embedded IPv4; a zone that names them would have us talk to
ourselves or to neighbours. For test beds the first of these may be allowed. Private networks are for whoever uses them.

*Not here*: our own addresses (`choice`), relays: they may be anywhere. RFC 6890, RFC 5735.
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


def to_destination(address: str, loopback: Loopback) -> str | None:
    """The address as mail may go there, a mapped one as the IPv4 address it is; None: it is refused, or no address."""
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
    """All of them, each family shuffled, one of each in turn, IPv4 first: if one of the families leads nowhere, every second
    try still does."""
    shuffled = (sorted(dict.fromkeys(family), key=lambda _: random.random()) for family in (v4, v6))
    return tuple(dict.fromkeys(address for pair in zip_longest(*shuffled) for address in pair if address is not None))
