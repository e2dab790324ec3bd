"""The opening of a client session: greeting, EHLO, HELO, STARTTLS, and what the server offers (RFC 5321 3.1, 3.2, RFC 3207).

*Rules*: at 5xx to EHLO the engine tries HELO on this connection; the deliverer remembers `needs_helo` and begins with HELO
on the next. Any other reply but 2xx refuses the session. Only the reply to EHLO has offers. A SIZE that makes no sense is no
limit (RFC 1870). STARTTLS is sent once, if TLS is wanted; what the server said before TLS is forgotten. Where TLS is
demanded, its absence ends the session, and HELO, which has no offers, is not the first choice.

*Not here*: bytes, order, time (`smtp.client`), states (`smtp.client.state`).
"""

from __future__ import annotations

import functools

import attrs

from mailismus.smtp.auth.selection import parse_offer
from mailismus.smtp.client.reply_parser import list_keywords, make_reply
from mailismus.smtp.client.starttls import TlsFailure, TlsFault, TlsUse
from mailismus.smtp.client.state import ClientEvent, ClientState

MAX_SIZE_DIGITS = 20
"""Digits of the value of SIZE (RFC 1870 5)."""
_MAX_CACHED = 2000
"""Bytes of a reply to EHLO whose offers are cached."""

# Read in each session: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_GREETING, _EHLO = ClientState.GREETING, ClientState.EHLO
_EHLO_SENT, _HELO_SENT, _OPENED = ClientEvent.EHLO_SENT, ClientEvent.HELO_SENT, ClientEvent.OPENED
_NEVER, _IF_OFFERED = TlsUse.NEVER, TlsUse.IF_OFFERED


@attrs.frozen
class Offers:
    """The extensions that the server offers. `max_size_bytes`: 0: no limit, or none is given."""

    pipelining: bool = False
    size: bool = False
    eightbit: bool = False
    max_size_bytes: int = 0
    starttls: bool = False
    utf8: bool = False
    auth: frozenset[str] = frozenset()
    """Mechanisms of authentication."""


NOTHING = Offers()


class Opening:
    """The opening of one session. `needs_helo`: whether the host refuses EHLO, as known before, then as found out. `use`:
    whether TLS is still to be used. `failure`: why END was the answer, if it is about TLS."""

    __slots__ = ("failure", "name", "needs_helo", "offers", "use")

    def __init__(self, name: bytes, needs_helo: bool, use: TlsUse = TlsUse.NEVER) -> None:
        self.name = name
        self.needs_helo = needs_helo and (use is _NEVER or use is _IF_OFFERED)
        self.use = use
        self.offers = NOTHING
        self.failure: TlsFailure | None = None

    def judge(self, state: ClientState, code: int, raw: bytes) -> ClientEvent:
        """Return the event that a reply in this state leads to. END: the server refuses the session."""
        if state is ClientState.STARTTLS:
            return self._judge_starttls(code, raw)
        if code // 100 == 2:
            if state is _GREETING:
                return _HELO_SENT if self.needs_helo else _EHLO_SENT
            if state is _EHLO:
                self.read_offers(raw)
            return _OPENED if self.use is _NEVER else self._want_tls()
        if code // 100 == 5 and state is _EHLO:
            self.needs_helo = True
            return _HELO_SENT
        if state is ClientState.HELO:
            self.needs_helo = False  # the host refuses both
        return ClientEvent.END

    def _want_tls(self) -> ClientEvent:
        """EHLO or HELO was accepted, and TLS is not yet there."""
        if self.offers.starttls:
            return ClientEvent.STARTTLS_SENT
        if self.use is _IF_OFFERED:
            return _OPENED
        self.failure = TlsFailure(TlsFault.NOT_OFFERED)
        return ClientEvent.END

    def _judge_starttls(self, code: int, raw: bytes) -> ClientEvent:
        if code // 100 == 2:
            return ClientEvent.TLS_BEGUN
        if self.use is _IF_OFFERED:
            return _OPENED
        self.failure = TlsFailure(TlsFault.REFUSED, bytes(make_reply(code, raw)))
        return ClientEvent.END

    def read_offers(self, raw: bytes) -> None:
        """Note what the server offers by its reply to EHLO or LHLO."""
        self.offers = _read_offers(raw) if len(raw) <= _MAX_CACHED else _read_offers.__wrapped__(raw)

    def begin_anew(self) -> None:
        """TLS is there: forget what the server said before."""
        self.offers, self.needs_helo, self.use = NOTHING, False, _NEVER

    def command_of(self, event: ClientEvent) -> bytes:
        """Return the command that is sent at EHLO_SENT, HELO_SENT or STARTTLS_SENT."""
        if event is ClientEvent.STARTTLS_SENT:
            return b"STARTTLS\r\n"
        return b"%b %b\r\n" % (b"HELO" if event is _HELO_SENT else b"EHLO", self.name)


@functools.lru_cache(256)  # a host gives the same reply each time
def _read_offers(raw: bytes) -> Offers:
    keywords = list_keywords(raw)
    size = keywords.get(b"SIZE", b"")
    return Offers(
        b"PIPELINING" in keywords,
        b"SIZE" in keywords,
        b"8BITMIME" in keywords,
        int(size) if size.isdigit() and len(size) <= MAX_SIZE_DIGITS else 0,
        b"STARTTLS" in keywords,
        b"SMTPUTF8" in keywords,
        parse_offer(keywords.get(b"AUTH", b"")),
    )
