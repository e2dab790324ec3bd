"""The relay that an administrator has redirected an entry to, in the word `via` of its recipient (pure).

    via=A7:HOST:PORT,A5:[2001:DB8::1]:PORT      ; the newest act first, which decides; an IPv6 address in brackets

*Rules*: the word overrides routing. A value that does not check tells of no relay: the usual route decides.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mailismus.mail.words import decode_words, encode_words

VIA = b"via"
MOST_RELAYS = 2
"""Redirections that one entry keeps; of more the oldest are forgotten."""
LONGEST_HOST = 100
"""Characters of a relay's name, at most: all words of a recipient share their room."""

_PART = re.compile(rb"A([1-9][0-9]{0,8}):(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,100})):([1-9][0-9]{0,4})").fullmatch


class Redirect(NamedTuple):
    """A relay, and the number of the act that redirected to it. `host`: a name or an address, without brackets."""

    act: int
    host: str
    port: int

    @property
    def relay(self) -> str:
        """As people write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def redirects_of(words: bytes | None) -> list[Redirect]:
    """Return the redirections of an entry with these words, the newest first."""
    if words is None or b"via=" not in words:
        return []
    found = map(_PART, decode_words(words).get(VIA, b"").split(b","))
    parts = [(int(one[1]), (one[2] or one[3]).decode("ascii"), int(one[4])) for one in found if one is not None]
    return [Redirect(*part) for part in parts if part[2] <= 65535]


def with_redirects(words: bytes | None, redirects: list[Redirect]) -> bytes:
    """Return the words with these redirections, the newest first, in place of theirs."""
    facts = decode_words(words)
    facts.pop(VIA, None)
    if redirects:
        facts[VIA] = b",".join(f"A{one.act}:{one.relay}".encode("ascii") for one in redirects[:MOST_RELAYS])
    return encode_words(facts) or b""
