"""The answer: the result for one name and record type (pure values).

*Not here*: parsing (`message`), the meaning for mail (`choice`).
"""

from __future__ import annotations

import enum

import attrs


class RecordType(enum.IntEnum):
    """The record types that are queried or read (RFC 1035 3.2.2, RFC 3596)."""

    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    MX = 15
    AAAA = 28


class Status(enum.Enum):
    """The kind of an answer."""

    FOUND = "found"
    NO_RECORDS = "no such record"
    """The name exists and has no record of this type."""
    NO_NAME = "no such name"
    """NXDOMAIN."""
    ALIAS = "alias"
    """The name is an alias of `name`, the next to ask for. The client follows it, so its callers never see this status."""
    FAILED = "failed"
    """No name server has an answer now."""


@attrs.frozen
class Exchange:
    """One MX record. `host` is `""` for the root, the null MX of RFC 7505."""

    preference: int
    host: str


@attrs.frozen
class Answer:
    """One answer, valid for `ttl_s` seconds. `text` tells people which server said it, or what failed."""

    status: Status
    name: str
    """The name that has the records, or has none: the queried name, or its last alias."""
    ttl_s: float
    text: str
    addresses: tuple[str, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    aliases: int = 0
    """CNAME records that led to `name`."""
