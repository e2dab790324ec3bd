r"""The domain name: our text form of it (pure).

*Rules*: our text is ASCII, lower case, absolute, without a final dot; the root is `""`. An octet other than a letter, digit,
hyphen or underscore is written `\DDD`, so that no name can forge a log line. UTF-8 becomes A-labels.

*Not here*: which names may be mail hosts, names in messages (dnspython). RFC 1035 3.1, RFC 5890, RFC 5891.
"""

from __future__ import annotations

import re
import struct

import dns.name
from dns.exception import DNSException
from dns.name import Name

MAX_LABELS = 40
"""Labels of a name that is asked for or read, the root's not counted: dnspython's work grows with their square."""
MAX_UNICODE = 1000
"""Longest domain, in characters, that is converted to A-labels."""
_MAX_HOST = 253

_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*").fullmatch
_PLAIN = re.compile(rb"[a-z0-9_-]*").fullmatch
_OCTET = re.compile(rb"[^a-z0-9_-]")

if not dns.name.have_idna_2008:  # dnspython wants a newer idna with each release, and does without it in silence
    raise ImportError("dnspython does not find the idna package that it needs: install dnspython[idna]")


class BadName(ValueError):
    """A name that can't be asked for."""


def is_host_name(name: str) -> bool:
    """Whether it may name a host: letters, digits, hyphens, and underscores, which the RFCs forbid but are in use."""
    return len(name) <= _MAX_HOST and _HOST(name) is not None


def to_ascii(domain: str) -> str | None:
    """The domain of an address in our text form, with A-labels; None: it can't be a domain."""
    if not domain.isascii():
        if len(domain) > MAX_UNICODE or "\\" in domain:
            return None
        try:
            domain = to_text(dns.name.from_unicode(domain, idna_codec=dns.name.IDNA_2008_UTS_46))
        except (DNSException, UnicodeError):
            return None
    name = domain.lower().removesuffix(".")
    return name if is_host_name(name) else None


def parse_name(text: str) -> Name:
    """The name that our text form means. Raises `BadName`."""
    try:
        name = dns.name.from_text(text.encode("ascii"))
    except (DNSException, UnicodeError, struct.error) as error:  # the last: an octet above 255, up to dnspython 2.8
        raise BadName(text) from error
    if len(name) > MAX_LABELS + 1:
        raise BadName(text)
    return name


def to_text(name: Name) -> str:
    """Our text form of an absolute name."""
    return ".".join(_to_text(label.lower()) for label in name.labels[:-1])


def _to_text(label: bytes) -> str:
    return (label if _PLAIN(label) else _OCTET.sub(_escape, label)).decode("ascii")


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\%03d" % found[0][0]
