"""The address: a mailbox as it stands in an envelope, between the angle brackets (RFC 5321 4.1.2 and 4.1.3).

*Rules*: bytes in the case they came in; ASCII, or UTF-8 where SMTPUTF8 was declared (`utf8`); a control byte stands nowhere,
not even behind a backslash in a quoted local part; a local part has at most 64 bytes, a label 63, the whole 254. What is
refused here reaches no record, no log and no other server.

*Not here*: whether an address is ours or exists (`mail.directory`), commands (`smtp.grammar`), header fields.
"""

from __future__ import annotations

import ipaddress
import re

from mailismus.mail.utf8 import ascii_form, to_ascii_domain

MAX_ADDRESS = 254
"""Bytes of a mailbox: a path has at most 256, its brackets included (RFC 5321 4.5.3.1.3)."""
MAX_LOCAL_PART = 64
"""Bytes of a local part as written, quotes included (RFC 5321 4.5.3.1.1)."""

_ATEXT = rb"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_DOT_STRING = rb"(?=[^@]{1,64}@)" + _ATEXT + rb"+(?:\." + _ATEXT + rb"+)*"
_QUOTED = rb'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_LABEL = rb"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
DOMAIN = _LABEL + rb"(?:\." + _LABEL + rb")*"
"""Pattern of a domain; the caller bounds its length (255)."""
LITERAL = rb"\[[0-9A-Za-z:.]{1,50}\]"
"""Pattern of a possible address literal: `is_literal` decides."""
ORDINARY = rb"(?=[^>]{1,254}(?:>|\Z))" + _DOT_STRING + rb"@" + DOMAIN
"""Pattern of a whole mailbox in its usual form, dot-string at domain, lengths checked; `>` or the end follows it."""

_IS_ORDINARY = re.compile(ORDINARY).fullmatch
_IS_DOMAIN = re.compile(DOMAIN).fullmatch
_SPLIT = re.compile(rb"(" + _DOT_STRING + rb"|" + _QUOTED + rb")@(" + DOMAIN + rb"|" + LITERAL + rb")").fullmatch
_ROUTE = re.compile(rb"@" + DOMAIN + rb"(?:,@" + DOMAIN + rb")*:").match
_UNQUOTE = re.compile(rb"\\(.)").sub


def is_mailbox(address: bytes) -> bool:
    """Whether this is `local-part@domain` or `local-part@[literal]` by the grammar, lengths included."""
    if _IS_ORDINARY(address):
        return True
    if len(address) > MAX_ADDRESS:
        return False
    found = _SPLIT(address)
    if not found or len(found[1]) > MAX_LOCAL_PART:
        return False
    return not found[2].startswith(b"[") or is_literal(found[2])


def parse_path(path: bytes) -> bytes | None:
    """The mailbox of a path (the text between the angle brackets), or None.

    A source route is dropped, as RFC 5321 appendix F.2 asks: `@a,@b:user@c` is `user@c`, and only that counts.
    """
    if path.startswith(b"@"):
        route = _ROUTE(path)
        if route is None:
            return None
        path = path[route.end() :]
    return path if is_mailbox(path) else None


def parse_utf8_path(path: bytes) -> bytes | None:
    """The mailbox of a path with bytes above 127 (RFC 6531 3.3), or None. It has no source route."""
    if len(path) > MAX_ADDRESS or len(path.rpartition(b"@")[0]) > MAX_LOCAL_PART:
        return None
    form = ascii_form(path)
    return path if form is not None and is_mailbox(form) else None


def is_domain(name: bytes) -> bool:
    """Whether this is a domain by the grammar: at most 255 bytes, no dot at its end."""
    return len(name) <= 255 and _IS_DOMAIN(name) is not None


def is_literal(text: bytes) -> bool:
    """Whether this is an address literal: `[192.0.2.1]` or `[IPv6:2001:db8::1]`. No other kind is registered."""
    if not (text.startswith(b"[") and text.endswith(b"]") and text.isascii()):
        return False
    inner = text[1:-1].decode("ascii")
    try:
        if inner[:5].lower() == "ipv6:":
            return ipaddress.IPv6Address(inner[5:]).scope_id is None
        ipaddress.IPv4Address(inner)
    except ValueError:
        return False
    return True


def domain_of(address: bytes) -> bytes:
    """The domain, or literal, in lower case, with A-labels; `b""` if there is none (the bare postmaster, the null
    reverse-path)."""
    at = address.rfind(b"@")
    if at < 0:
        return b""
    domain = address[at + 1 :].lower()
    return domain if domain.isascii() else to_ascii_domain(domain) or domain


def mailbox_of(address: bytes) -> tuple[bytes, bytes]:
    """Local part and domain of the mailbox, equal for all spellings: the domain in any case, an address literal in any
    notation, a local part quoted or not. The case of a local part is significant: only its host may ignore it (RFC 5321
    2.4)."""
    domain = domain_of(address)
    if domain.startswith(b"[ipv6:") and is_literal(domain):
        domain = b"[ipv6:%b]" % ipaddress.IPv6Address(domain[6:-1].decode("ascii")).compressed.encode("ascii")
    return local_part_of(address), domain


def local_part_of(address: bytes) -> bytes:
    """The local part in its original case, without quoting: of `"joe"@x` it is `joe`."""
    local_part = address.rpartition(b"@")[0] if b"@" in address else address
    if local_part.startswith(b'"'):
        return _UNQUOTE(rb"\1", local_part[1:-1])
    return local_part
