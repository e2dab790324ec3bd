"""Words: further facts about a message or one of its recipients, as `KEY=VALUE`, one space between two of them.

    words = word *(SP word)             ; keys in ascending order, each once
    word  = key "=" value
    key   = (ALPHA) *31(ALPHA / DIGIT / "-")   ; upper case: of the message; lower case: of the recipient
    value = *(%x21-24 / %x26-7E / "%" 2HEXDIG)

A queue keeps them as these bytes, and changes and interprets nothing in them: a word that a program does not know stays
where it is. Which words there are: `docs/formats/versions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

LONGEST_WORDS = 1000
"""Bytes of all words of one message, and of one recipient, at most."""

_VALUE = rb"(?:[!-$&-~]|%[0-9A-F]{2})*"
_MESSAGE_WORD = rb"[A-Z][A-Z0-9-]{0,31}=" + _VALUE
_RECIPIENT_WORD = rb"[a-z][a-z0-9-]{0,31}=" + _VALUE
_MESSAGE_WORDS = re.compile(rb"%b(?: %b)*" % (_MESSAGE_WORD, _MESSAGE_WORD)).fullmatch
_RECIPIENT_WORDS = re.compile(rb"%b(?: %b)*" % (_RECIPIENT_WORD, _RECIPIENT_WORD)).fullmatch
_WORDS = re.compile(
    rb"((?:%b(?: %b)*)?)(?:(?:^| )(%b(?: %b)*))?" % (_MESSAGE_WORD, _MESSAGE_WORD, _RECIPIENT_WORD, _RECIPIENT_WORD)
).fullmatch
_UNSAFE = re.compile(rb"[^!-$&-~]")
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")


def encode_words(facts: Mapping[bytes, bytes]) -> bytes | None:
    """The words that say these facts, by their keys; None: there are none. Any byte may be in a value."""
    words = [b"%b=%b" % (key, escape(facts[key], _UNSAFE)) for key in sorted(facts)]
    return b" ".join(words) or None


def decode_words(words: bytes | None) -> dict[bytes, bytes]:
    """The facts that these words say, those of unknown keys too."""
    pairs = (word.split(b"=", 1) for word in (words or b"").split())
    return {key: unescape(value) for key, value in pairs}


def escape(data: bytes, unsafe: re.Pattern[bytes]) -> bytes:
    """The data with `%XX` for each byte that matches."""
    return unsafe.sub(lambda found: b"%%%02X" % found[0][0], data)


def unescape(data: bytes) -> bytes:
    """The data that `escape` has made this of."""
    return _ESCAPED.sub(lambda found: bytes((int(found[1], 16),)), data)


def check_message_words(words: bytes) -> None:
    """Raise `ValueError` unless these are words of a message: that is an error of the program, not of a peer."""
    _check(words, "a message", has_syntax=_MESSAGE_WORDS(words) is not None)


def check_recipient_words(words: bytes) -> None:
    """Raise `ValueError` unless these are words of a recipient."""
    _check(words, "a recipient", has_syntax=_RECIPIENT_WORDS(words) is not None)


def _check(words: bytes, owner: str, *, has_syntax: bool) -> None:
    if len(words) > LONGEST_WORDS:
        raise ValueError(f"the words of {owner} are {len(words)} bytes long, more than {LONGEST_WORDS}")
    if not has_syntax:
        raise ValueError(f"these are no words of {owner}: {words!r}")
    if any(one >= other for one, other in pairwise(_keys(words))):
        raise ValueError(f"the words of {owner} are not in the order of their keys, each once: {words!r}")


def _keys(words: bytes) -> Iterable[bytes]:
    return (word.partition(b"=")[0] for word in words.split(b" "))


def split_words(words: bytes) -> tuple[bytes | None, bytes | None] | None:
    """The words of the message and those of the recipient, where those of the message come first; None: these are no words.
    Their order and length are not checked: what a newer program wrote is kept as it is."""
    found = _WORDS(words)
    if found is None or not words:
        return None
    return found[1] or None, found[2]
