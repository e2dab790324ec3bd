"""UTF-8 in addresses and headers: which there may be, and what a host without SMTPUTF8 can get instead (RFC 6531, 6532).

A domain may be written in U-labels; its A-labels (RFC 5890) are the same domain, in ASCII. Only SMTPUTF8 carries a local
part outside of ASCII, or a header in UTF-8: a message that needs it has the word `UTF8` (`mail.words`).

*Rules*: every character of an address is plainly visible. Controls, separators and characters that change the direction of
writing are refused, but for the joiners that some scripts need.

*Not here*: addresses in ASCII (`address`).
"""

from __future__ import annotations

import re

from mailismus.mail.words import decode_words, encode_words

MAX_DOMAIN = 1000
"""Bytes of a domain that is converted to A-labels."""

_HIGH_AS_LETTER = bytes(range(128)) + b"u" * 128
_JOINERS = "\u200c\u200d"
_LABELS = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*").fullmatch
_WORD = b"UTF8"
_HEADER, _ADDRESS = b"HEADER", b"ADDRESS"

HEADER_WORDS = encode_words({_WORD: _HEADER})
"""The words of a message whose header needs SMTPUTF8."""
ADDRESS_WORDS = encode_words({_WORD: _ADDRESS})
"""The words of a message of which only addresses need SMTPUTF8."""


def has_utf8_header(words: bytes | None) -> bool:
    """Whether the header of a message with these words needs SMTPUTF8."""
    return words is not None and decode_words(words).get(_WORD) == _HEADER


def to_ascii_domain(domain: bytes) -> bytes | None:
    """Return a domain in A-labels and lower case; None: it is none."""
    import dns.name  # here: most commands read ASCII alone
    from dns.exception import DNSException

    if len(domain) > MAX_DOMAIN or b"\\" in domain:
        return None
    try:
        name = dns.name.from_unicode(domain.decode("utf-8"), idna_codec=dns.name.IDNA_2008_UTS_46)
        text = name.to_text(omit_final_dot=True).lower()
    except (DNSException, UnicodeError):
        return None
    return text.encode("ascii") if text.isascii() and _LABELS(text) else None


def to_ascii_address(address: bytes) -> bytes | None:
    """Return an address in ASCII that is the same mailbox; None: there is none."""
    if address.isascii():
        return address
    local_part, _, domain = address.rpartition(b"@")
    if not local_part.isascii():
        return None
    found = to_ascii_domain(domain)
    return None if found is None else b"%b@%b" % (local_part, found)


def ascii_form(path: bytes) -> bytes | None:
    """Return what the grammar of ASCII has to allow for this path to be one: its domain in A-labels, a letter for each other
    byte above 127. None: it is no visible UTF-8."""
    try:
        text = path.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not all(character.isascii() or character.isprintable() or character in _JOINERS for character in text):
        return None
    local_part, at, domain = path.rpartition(b"@")
    found = domain if domain.isascii() else to_ascii_domain(domain)
    return None if found is None else local_part.translate(_HIGH_AS_LETTER) + at + found
