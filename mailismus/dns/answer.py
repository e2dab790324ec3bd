"""The answer: the result for one name and record type (pure values).

*Not here*: parsing (`message`), the meaning for mail (`choice`).
"""

from __future__ import annotations

import enum

import attrs


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
    is_secure: bool = False
    """Whether DNSSEC authenticates the answer, a denial too, as a name server says whose word counts."""
