"""Blocks: networks in CIDR form, IPv4 and IPv6, as people write them (RFC 4632 3.1, RFC 4291 2.3).

*Rules*: pure. Short forms of IPv4 need their prefix length: `192.168/16` is 192.168.0.0/16. A bare address is the network
of that one address. Bits set behind the prefix are an error: 10.0.0.1/8 may mean either 10.0.0.1 or 10/8, and the two
differ by sixteen million hosts that may relay. IPv4 mapped into IPv6 (`::ffff:192.0.2.1`) is an error too: a client that
comes so is its IPv4 address, and such a block would never hold it.
"""

from __future__ import annotations

import ipaddress

from mailismus.config.values.units import UnitError, parse_count

Block = ipaddress.IPv4Network | ipaddress.IPv6Network
_MAPPED_BITS = 96

BLOCK_FORM = "an IP address or a network such as 192.0.2.0/24, 192.168/16 or 2001:db8::/32"


def parse_block(text: str) -> Block:
    """One address or network."""
    host, slash, prefix_text = text.partition("/")
    parts = host.split(".")
    if slash and ":" not in host and len(parts) < 4:
        host = ".".join(parts + ["0"] * (4 - len(parts)))
    try:
        if "%" in host or not host.isascii():
            raise UnitError("a zone or another alphabet")
        address = ipaddress.ip_address(host)
        prefix = parse_count(prefix_text) if slash else address.max_prefixlen
    except ValueError:
        raise UnitError(f'"{text}" is not a network: write {BLOCK_FORM}') from None
    if prefix > address.max_prefixlen:
        raise UnitError(f'"{text}" has a prefix too long: write at most {address.max_prefixlen} behind the "/"')
    block = ipaddress.ip_network((address, prefix), strict=False)
    if block.network_address != address:
        raise UnitError(
            f'"{text}" has bits set behind the prefix: write {block} for the network or {address} for the one address'
        )
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None and prefix >= _MAPPED_BITS:
        plain = ipaddress.IPv4Network((address.ipv4_mapped, prefix - _MAPPED_BITS))
        raise UnitError(f'"{text}" is IPv4 mapped into IPv6, and such clients count as IPv4: write {show_block(plain)}')
    return block


def show_block(block: Block) -> str:
    """A network as `parse_block` reads it; that of one address as the address alone."""
    return str(block.network_address) if block.prefixlen == block.max_prefixlen else str(block)
