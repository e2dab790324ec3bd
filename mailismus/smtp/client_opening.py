"""The opening of a session as the client sees it: greeting, EHLO, HELO, and what the server offers (RFC 5321 3.1, 3.2).

*Rules*: 5xx to EHLO means that HELO is tried, on this connection, and at once by whoever remembers `needs_helo`. Whatever
else is not 2xx refuses the session. Offers are those of EHLO alone, and a size that makes no sense is none (RFC 1870).

*Not here*: bytes, order, time (`smtp.client`).
"""

from __future__ import annotations

import functools

import attrs

from mailismus.smtp.reply_parser import list_keywords

MAX_SIZE_DIGITS = 20
"""Of the size that a server says it takes (RFC 1870 5)."""
_MAX_CACHED = 2000


@attrs.frozen
class Offers:
    """What the server offers. `max_size_bytes` 0: no limit, or none that is told."""

    pipelining: bool = False
    size: bool = False
    eightbit: bool = False
    max_size_bytes: int = 0


NOTHING = Offers()


class Opening:
    """One session's. `needs_helo`: the host is known to refuse EHLO; afterwards: whether it does."""

    __slots__ = ("_is_greeted", "_is_helo", "_name", "is_refused", "needs_helo", "offers")

    def __init__(self, name: bytes, needs_helo: bool) -> None:
        self._name = name
        self._is_greeted = self._is_helo = False
        self.needs_helo = needs_helo
        self.is_refused = False
        self.offers = NOTHING

    def take(self, code: int, raw: bytes) -> bytes:
        """The next reply. Gives the command that follows it; none: the session stands, or `is_refused`."""
        if code // 100 == 2:
            if not self._is_greeted:
                self._is_greeted, self._is_helo = True, self.needs_helo
                return b"%b %b\r\n" % (b"HELO" if self._is_helo else b"EHLO", self._name)
            if not self._is_helo:
                self.offers = _read_offers(raw) if len(raw) <= _MAX_CACHED else _read_offers.__wrapped__(raw)
            return b""
        if code // 100 == 5 and self._is_greeted and not self._is_helo:
            self._is_helo = self.needs_helo = True
            return b"HELO %b\r\n" % self._name
        if self._is_helo:
            self.needs_helo = False  # it refuses everything
        self.is_refused = True
        return b""


@functools.lru_cache(256)  # a host says the same each time
def _read_offers(raw: bytes) -> Offers:
    keywords = list_keywords(raw)
    size = keywords.get(b"SIZE", b"")
    return Offers(
        b"PIPELINING" in keywords,
        b"SIZE" in keywords,
        b"8BITMIME" in keywords,
        int(size) if size.isdigit() and len(size) <= MAX_SIZE_DIGITS else 0,
    )
