"""The opening of a client session: greeting, EHLO, HELO, and what the server offers (RFC 5321 3.1, 3.2).

*Rules*: at 5xx to EHLO the engine tries HELO on this connection; the deliverer remembers `needs_helo` and begins with HELO
on the next. Any other reply but 2xx refuses the session. Only the reply to EHLO has offers. A SIZE that makes no sense is no
limit (RFC 1870).

*Not here*: bytes, order, time (`smtp.client`), states (`smtp.client.state`).
"""

from __future__ import annotations

import functools

import attrs

from mailismus.smtp.client.reply_parser import list_keywords
from mailismus.smtp.client.state import ClientEvent, ClientState

MAX_SIZE_DIGITS = 20
"""Digits of the value of SIZE (RFC 1870 5)."""
_MAX_CACHED = 2000
"""Bytes of a reply to EHLO whose offers are cached."""

# Read in each session: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_GREETING, _EHLO = ClientState.GREETING, ClientState.EHLO
_EHLO_SENT, _HELO_SENT, _OPENED = ClientEvent.EHLO_SENT, ClientEvent.HELO_SENT, ClientEvent.OPENED


@attrs.frozen
class Offers:
    """The extensions that the server offers. `max_size_bytes`: 0: no limit, or none is given."""

    pipelining: bool = False
    size: bool = False
    eightbit: bool = False
    max_size_bytes: int = 0
    utf8: bool = False


NOTHING = Offers()


class Opening:
    """The opening of one session. `needs_helo`: whether the host refuses EHLO, as known before, then as found out."""

    __slots__ = ("_name", "needs_helo", "offers")

    def __init__(self, name: bytes, needs_helo: bool) -> None:
        self._name = name
        self.needs_helo = needs_helo
        self.offers = NOTHING

    def judge(self, state: ClientState, code: int, raw: bytes) -> ClientEvent:
        """Return the event that a reply in this state leads to. END: the server refuses the session."""
        if code // 100 == 2:
            if state is _GREETING:
                return _HELO_SENT if self.needs_helo else _EHLO_SENT
            if state is _EHLO:
                self.offers = _read_offers(raw) if len(raw) <= _MAX_CACHED else _read_offers.__wrapped__(raw)
            return _OPENED
        if code // 100 == 5 and state is _EHLO:
            self.needs_helo = True
            return _HELO_SENT
        if state is ClientState.HELO:
            self.needs_helo = False  # the host refuses both
        return ClientEvent.END

    def command_of(self, event: ClientEvent) -> bytes:
        """Return the command that is sent at EHLO_SENT or HELO_SENT."""
        return b"%b %b\r\n" % (b"HELO" if event is _HELO_SENT else b"EHLO", self._name)


@functools.lru_cache(256)  # a host gives the same reply each time
def _read_offers(raw: bytes) -> Offers:
    keywords = list_keywords(raw)
    size = keywords.get(b"SIZE", b"")
    return Offers(
        b"PIPELINING" in keywords,
        b"SIZE" in keywords,
        b"8BITMIME" in keywords,
        int(size) if size.isdigit() and len(size) <= MAX_SIZE_DIGITS else 0,
        utf8=b"SMTPUTF8" in keywords,
    )
