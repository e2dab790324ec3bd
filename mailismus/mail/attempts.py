"""Attempts: the history of one recipient as a word of its line, `tries` (pure).

    tries   = attempt *("|" attempt)               ; ascending by number
    attempt = number "," at "," decided ["," tls "," host "," code "," enhanced "," text]
    number  = 1*9DIGIT                             ; of the attempt, from 1: what is left out shows as a gap
    at      = 1*11DIGIT                            ; when it ended, UTC seconds
    decided = "d" 1*9DIGIT / "b" / "x"             ; deferred for so many seconds, bounced, expired

An attempt without the fields behind `decided` has those of the one in front of it. In a field a space is `+`, and any byte
but `!-~`, and each of `%+,|`, is `%XX`; the word escapes `%` once more (`mail.words`).

*Rules*: the first attempt and the last `LAST` are kept. The word has at most `LONGEST` bytes: texts are cut for that, then
the older ones of the last attempts are left out. A word that does not have this form is no history, and harms nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import attrs

from mailismus.mail.words import LONGEST_WORDS, decode_words, encode_words, escape, unescape

TRIES = b"tries"
LAST = 5
"""Attempts that are kept beside the first one."""
LONGEST = 600
"""Bytes of the word: others need room in the line too, and lines of entries may be in memory."""
MAX_HOST = 100
"""Bytes kept of a host, `name[ip]:port`."""
MAX_TLS = 20
"""Bytes kept of the level of TLS, and of the enhanced status code."""
TEXTS = (100, 70, 50, 40, 30, 20, 0)
"""Bytes kept of each text: the first of these with which the word is short enough."""
CUT = b"..."
"""The end of a text that was cut."""

DEFERRED, BOUNCED, EXPIRED = "deferred", "bounced", "expired"

_LETTERS = {DEFERRED: b"d", BOUNCED: b"b", EXPIRED: b"x"}
_DECIDED = {letter: decided for decided, letter in _LETTERS.items()}
_UNSAFE = re.compile(rb"[^ !-$&-*\--{}~]")
_FIELD = rb"[!-$&-+\--{}~]*(?:%[0-9A-F]{2}[!-$&-+\--{}~]*)*"
_ATTEMPT = re.compile(
    rb"((\d{1,9}),\d{1,11},(?:d\d{1,9}|[bx]))(?:,(%b,%b,\d{3},%b),(%b))?" % (_FIELD, _FIELD, _FIELD, _FIELD)
).fullmatch


@attrs.frozen
class PastAttempt:
    """One attempt, as plain values. Host, status and text may hold any byte: they are other servers' words."""

    number: int
    """From 1."""
    at: int
    """When it ended: UTC seconds."""
    decided: str
    """`DEFERRED`, `BOUNCED` or `EXPIRED`."""
    wait_s: int
    """Of a deferred one: how long it had to wait for the next attempt."""
    tls: bytes
    """The level of TLS that was met, as in the log behind `tls=`; empty: none, or no host was reached."""
    host: bytes
    """As in `mail.outcome.Outcome`."""
    code: int
    enhanced: bytes
    text: bytes

    @property
    def reply(self) -> bytes:
        """The reply in one line, or its beginning."""
        return b" ".join(filter(None, (b"%03d" % self.code, self.enhanced, self.text)))

    @property
    def next_at(self) -> int | None:
        """When the next attempt was due: UTC seconds; None: there was none to come."""
        return self.at + self.wait_s if self.decided == DEFERRED else None


def attempts_of(words: bytes | None) -> tuple[PastAttempt, ...]:
    """The attempts that are kept in the words of a recipient, in order; none: there is no history, or a damaged one."""
    if words is None or TRIES not in words:
        return ()
    return tuple(map(_decode, _split(decode_words(words).get(TRIES, b""))))


def with_attempt(words: bytes | None, attempt: PastAttempt) -> bytes | None:
    """The words with one attempt more. The history begins anew with a number that is not behind the others."""
    facts = decode_words(words)
    kept = _split(facts.pop(TRIES, b""))
    if kept and kept[-1].number >= attempt.number:
        kept = []
    if value := _bounded([*kept, _encode(attempt)]):
        facts[TRIES] = value
    return fitting(encode_words(facts) or b"") or None


def fitting(words: bytes) -> bytes:
    """The words, without the history if they would be too long with it: other words go first."""
    return words if len(words) <= LONGEST_WORDS else without_attempts(words) or b""


def without_attempts(words: bytes | None) -> bytes | None:
    """The words without the history."""
    if words is None or TRIES not in words:
        return words
    facts = decode_words(words)
    facts.pop(TRIES, None)
    return encode_words(facts)


def cut(text: bytes, longest: int) -> bytes:
    """Return a text of at most so many bytes; of one that is cut at least `CUT` is left."""
    return text if len(text) <= longest else text[: max(0, longest - len(CUT))] + CUT


class _Kept(NamedTuple):
    """An attempt as it stands in the word: it is decoded for those who look, not for the next attempt."""

    number: int
    head: bytes
    """Number, time and decision."""
    fields: bytes
    """Level of TLS, host, code and status."""
    text: bytes


def _encode(one: PastAttempt) -> _Kept:
    decided = _LETTERS[one.decided] + (b"%d" % one.wait_s if one.decided == DEFERRED else b"")
    fields = _quote(one.tls[:MAX_TLS]), _quote(one.host[:MAX_HOST]), b"%03d" % one.code, _quote(one.enhanced[:MAX_TLS])
    text = _quote(cut(one.text, TEXTS[0]))
    return _Kept(one.number, b"%d,%d,%b" % (one.number, one.at, decided), b",".join(fields), text)


def _decode(kept: _Kept) -> PastAttempt:
    number, at, decided = kept.head.split(b",")
    tls, host, code, enhanced = map(_unquote, kept.fields.split(b","))
    how, wait_s = _DECIDED[decided[:1]], int(decided[1:] or 0)
    return PastAttempt(int(number), int(at), how, wait_s, tls, host, int(code), enhanced, _unquote(kept.text))


def _bounded(kept: list[_Kept]) -> bytes:
    """Return the word's value of the first attempt and the last ones, as long as it may be; empty: there is no room."""
    kept = [*kept[:1], *kept[1:][-LAST:]]
    while kept:
        for longest in TEXTS:
            value = _join(kept, longest)
            if len(TRIES) + 1 + len(value) + 2 * value.count(b"%") <= LONGEST:
                return value
        del kept[1 if len(kept) > 2 else 0]
    return b""


def _join(kept: list[_Kept], longest: int) -> bytes:
    parts, last = [], b""
    for one in kept:
        said = one.fields + b"," + _cut_quoted(one.text, longest)
        parts.append(one.head if said == last else one.head + b"," + said)
        last = said
    return b"|".join(parts)


def _split(value: bytes) -> list[_Kept]:
    """Return the attempts in the word's value; none if it has another form."""
    kept: list[_Kept] = []
    fields = text = None
    for part in value.split(b"|") if value else ():
        found = _ATTEMPT(part)
        if found is None:
            return []
        head, number, *said = found.groups()
        if said[0] is not None:
            fields, text = said
        if fields is None or text is None or (kept and int(number) <= kept[-1].number):
            return []
        kept.append(_Kept(int(number), head, fields, text))
    return kept


def _cut_quoted(text: bytes, longest: int) -> bytes:
    if len(text) <= longest or b"%" not in text:
        return cut(text, longest)
    return _quote(cut(_unquote(text), longest))


def _quote(field: bytes) -> bytes:
    return escape(field, _UNSAFE).replace(b" ", b"+")


def _unquote(field: bytes) -> bytes:
    return unescape(field.replace(b"+", b" "))
