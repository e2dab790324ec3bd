"""Redirections of an entry to another relay, as the word `via` of its recipient: which act, and where to (pure).

    via=A7:relay.example:25,A5:[2001:db8::1]:2525      ; the newest act first, which decides

*Rules*: the word overrides routing. A part that does not check tells of no relay: the usual route decides.
"""

from __future__ import annotations

from typing import NamedTuple

from mailismus.config.values.names import format_host_port, parse_host_port
from mailismus.mail.attempts import fitting
from mailismus.mail.words import decode_words, encode_words
from mailismus.queue.acts.act import name_of, number_of

VIA = b"via"
MOST_RELAYS = 2
"""Redirections that one entry keeps; of more the oldest are forgotten."""
LONGEST_HOST = 100
"""Characters of a relay's name, at most: all words of a recipient share their room."""
DEFAULT_PORT = 25


class Redirect(NamedTuple):
    """The number of an act, and the relay that it redirected to, as `parse_relay` returns it."""

    act: int
    relay: str


def parse_relay(text: str) -> str:
    """Return the relay that a person means, as `HOST:PORT` in lower case. Raises `ValueError`, which says what to write."""
    if "@" in text:
        raise ValueError("write a relay, HOST:PORT: mail is not redirected to another recipient")
    host, port = parse_host_port(text, DEFAULT_PORT)
    if len(host) > LONGEST_HOST:
        raise ValueError(f"write a relay with a name of at most {LONGEST_HOST} characters")
    return format_host_port((host, port))


def redirects_of(words: bytes | None) -> list[Redirect]:
    """Return the redirections of an entry with these words, the newest first."""
    if words is None or VIA not in words:
        return []
    parts = map(_redirect_of, decode_words(words).get(VIA, b"").decode("latin-1").split(","))
    return [one for one in parts if one is not None]


def with_redirects(words: bytes | None, redirects: list[Redirect]) -> bytes:
    """Return the words with these redirections, the newest first, in place of theirs."""
    facts = decode_words(words)
    facts.pop(VIA, None)
    if redirects:
        facts[VIA] = ",".join(f"{name_of(one.act)}:{one.relay}" for one in redirects[:MOST_RELAYS]).encode("ascii")
    return fitting(encode_words(facts) or b"")


def _redirect_of(part: str) -> Redirect | None:
    name, _, relay = part.partition(":")
    number = number_of(name)
    try:
        is_relay = parse_relay(relay) == relay
    except ValueError:
        return None
    return Redirect(number, relay) if number is not None and is_relay else None
