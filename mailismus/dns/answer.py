"""The answer: what is known of one name and one type of record (pure values).

*Not here*: how it is read (`message`), what it means for mail (`choice`).
"""

from __future__ import annotations

import enum

import attrs


class RecordType(enum.IntEnum):
    """The types of records that are asked for or read (RFC 1035 3.2.2, RFC 3596)."""

    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    MX = 15
    AAAA = 28


class Status(enum.Enum):
    """What an answer says."""

    FOUND = "found"
    NO_RECORDS = "no such record"
    """The name exists, it has no record of this type."""
    NO_NAME = "no such name"
    """NXDOMAIN."""
    ALIAS = "alias"
    """The name is an alias of `name`, which is to be asked for next. The client follows it: its callers never see this."""
    FAILED = "failed"
    """Nobody knows now."""


@attrs.frozen
class Exchange:
    """One MX record. `host` is `""` for the root, the null MX of RFC 7505."""

    preference: int
    host: str


@attrs.frozen
class Answer:
    """One answer, good for `ttl_s` seconds from when it was given. `text` is for people and says where it is from."""

    status: Status
    name: str
    """The name that has the records, or has none: the one asked for, or the last of its aliases."""
    ttl_s: float
    text: str
    addresses: tuple[str, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    aliases: int = 0
    """CNAME records that led to `name`."""
