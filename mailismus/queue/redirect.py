"""Redirections of an entry, as words of its recipient: which act, and which other relay or recipient (pure).

    via=A7:relay.example:25,A5:[2001:db8::1]:2525      ; relays, the newest act first
    to=A9:joe@other.example,A8:ann@c.example           ; recipients, the same

The final recipient is that of the newest part of `to`, else the recipient of the envelope, which is never changed. The
newest act decides about the route: a relay, or the usual route of a recipient that was named after it.

*Rules*: a part that does not check tells of nothing: the usual route, or the recipient below it, decides. In an address `%`
and `,` are `%XX`; the words escape `%` once more (`mail.words`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mailismus.config.values.names import format_host_port, parse_host_port
from mailismus.mail.address import is_mailbox, mailbox_of, parse_utf8_path
from mailismus.mail.attempts import fitting
from mailismus.mail.ids import act_name, parse_act_name
from mailismus.mail.words import decode_words, encode_words, escape, unescape

VIA, TO = b"via", b"to"
MOST_KEPT = 2
"""Redirections to relays, and to recipients, that one entry keeps; of more the oldest are forgotten."""
LONGEST_HOST = 100
"""Characters of a relay's name, at most: all words of a recipient share their room."""
LONGEST_TO = 400
"""Bytes of the word `to`, without its key: of two recipients that take more the older one is forgotten."""
LONGEST_ADDRESS = LONGEST_TO - len("A999999999:")
"""Bytes of a recipient there: an ordinary one in ASCII is never longer."""
DEFAULT_PORT = 25
TARGET_FORM = "a relay, HOST or HOST:PORT, or a recipient, such as joe@other.example"

_SEPARATORS = re.compile(rb"[%,]")


class Redirect(NamedTuple):
    """The number of an act, and the relay or recipient that it redirected to, as `parse_target` returns it."""

    act: int
    target: str


def is_address(target: str) -> bool:
    """Whether a target is a recipient, and no relay."""
    return "@" in target


def parse_target(text: str) -> str:
    """Return the relay (`HOST:PORT` in lower case) or recipient that a person means. Raises `ValueError`, which says what to
    write."""
    return _parse_address(text) if is_address(text) else _parse_relay(text)


def _parse_relay(text: str) -> str:
    host, port = parse_host_port(text, DEFAULT_PORT)
    if len(host) > LONGEST_HOST:
        raise ValueError(f"write a relay with a name of at most {LONGEST_HOST} characters")
    return format_host_port((host, port))


def _parse_address(text: str) -> str:
    address = text.encode("utf-8", "surrogatepass")
    if not (is_mailbox(address) if address.isascii() else parse_utf8_path(address) is not None):
        raise ValueError(f"write {TARGET_FORM}")
    if _length_of(_written(address)) > LONGEST_ADDRESS:
        raise ValueError(
            f"the address is too long: in UTF-8, with %XX for each such byte, it may have {LONGEST_ADDRESS} bytes"
        )
    return text


def redirects_of(words: bytes | None) -> list[Redirect]:
    """Return the redirections of an entry with these words, to relays and to recipients, the newest first."""
    if words is None or (VIA not in words and TO not in words):
        return []
    facts = decode_words(words)
    relays = map(_relay_of, facts.get(VIA, b"").split(b","))
    recipients = map(_recipient_of, facts.get(TO, b"").split(b","))
    found = [one for one in (*relays, *recipients) if one is not None]
    return sorted(found, key=lambda one: one.act, reverse=True)


def with_redirects(words: bytes | None, redirects: Sequence[Redirect]) -> bytes:
    """Return the words with these redirections, the newest first, in place of theirs."""
    facts = decode_words(words)
    facts.pop(VIA, None)
    facts.pop(TO, None)
    relays = [_part(one) for one in redirects if not is_address(one.target)]
    recipients = [_part(one) for one in redirects if is_address(one.target)][:MOST_KEPT]
    if relays:
        facts[VIA] = b",".join(relays[:MOST_KEPT])
    while recipients:
        facts[TO] = b",".join(recipients)
        if _length_of(facts[TO]) <= LONGEST_TO:
            break
        recipients.pop()
    return fitting(encode_words(facts) or b"")


def final_recipient(recipient: bytes, words: bytes | None) -> bytes:
    """Return the address to which an entry with these words is sent, of whose envelope `recipient` is."""
    to = _newest_recipient(words)
    return recipient if to is None else to.target.encode("utf-8")


def relay_of(words: bytes | None) -> str | None:
    """Return the relay through which an entry with these words is sent; None: its usual route."""
    redirects = redirects_of(words)
    return None if not redirects or is_address(redirects[0].target) else redirects[0].target


def is_sent_to(recipient: bytes, words: bytes | None, target: str) -> bool:
    """Whether such an entry is sent to this recipient already, in any spelling: redirecting it would change nothing."""
    return is_address(target) and mailbox_of(final_recipient(recipient, words)) == mailbox_of(target.encode("utf-8"))


def _newest_recipient(words: bytes | None) -> Redirect | None:
    return next((one for one in redirects_of(words) if is_address(one.target)), None)


def _part(one: Redirect) -> bytes:
    target = one.target.encode("utf-8")
    return b"%b:%b" % (act_name(one.act).encode("ascii"), _written(target) if is_address(one.target) else target)


def _length_of(value: bytes) -> int:
    """Return how many bytes a value takes among the words."""
    return len(encode_words({TO: value}) or b"") - len(b"to=")


def _written(address: bytes) -> bytes:
    return escape(address, _SEPARATORS)


def _relay_of(part: bytes) -> Redirect | None:
    return _redirect_of(part, _parse_relay)


def _recipient_of(part: bytes) -> Redirect | None:
    return _redirect_of(unescape(part), _parse_address)


def _redirect_of(part: bytes, parse: Callable[[str], str]) -> Redirect | None:
    try:
        name, _, target = part.decode("utf-8").partition(":")
        number = parse_act_name(name)
        return Redirect(number, target) if number is not None and parse(target) == target else None
    except ValueError:
        return None
