"""Attempts: the history of one recipient as a word of its line, `tries` (pure).

    tries   = attempt *("|" attempt)               ; ascending by number
    attempt = number "," at "," decided ["," tls "," host "," code "," enhanced "," text]
    number  = 1*9DIGIT                             ; of the attempt, from 1: what is left out shows as a gap
    at      = 1*12DIGIT                            ; when it ended, UTC seconds
    decided = "d" 1*9DIGIT / "b" / "x"             ; deferred for so many seconds, bounced, expired

An attempt without the fields behind `decided` has those of the one in front of it. In a field a space is `+`, and any byte
but `!-~`, and each of `%+,|`, is `%XX`; the word escapes `%` once more (`mail.words`).

*Rules*: the first attempt and the last `LAST` are kept. The word has at most `LONGEST` bytes: texts are cut for that, then
the older ones of the last attempts are left out. A word that does not have this form is no history, and harms nothing.
"""

from __future__ import annotations

import re

import attrs

from mailismus.mail.words import LONGEST_WORDS, decode_words, encode_words

TRIES = b"tries"
LAST = 5
"""Attempts that are kept beside the first one."""
LONGEST = 600
"""Bytes of the word: others need room in the line too, and lines of entries may be in memory."""
MAX_HOST = 100
"""Bytes kept of a host, `name[ip]:port`."""
MAX_TLS = 20
"""Bytes kept of the level of TLS."""
TEXTS = (100, 60, 30, 0)
"""Bytes kept of each text: the first of these with which the word is short enough."""
CUT = b"..."
"""The end of a text that was cut."""

DEFERRED, BOUNCED, EXPIRED = "deferred", "bounced", "expired"

_LETTERS = {DEFERRED: b"d", BOUNCED: b"b", EXPIRED: b"x"}
_DECIDED = {letter: decided for decided, letter in _LETTERS.items()}
_UNSAFE = re.compile(rb"[^!-$&-*\--{}~]")
_FIELD = rb"(?:[!-$&-+\--{}~]|%[0-9A-F]{2})*"
_ATTEMPT = re.compile(
    rb"(\d{1,9}),(\d{1,12}),(?:d(\d{1,9})|([bx]))(?:,(%b),(%b),(\d{3}),(%b),(%b))?" % (_FIELD, _FIELD, _FIELD, _FIELD)
).fullmatch
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")


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
    return _decode(decode_words(words).get(TRIES, b""))


def left_out(attempts: tuple[PastAttempt, ...]) -> int:
    """How many attempts between the first and the last that are kept are left out."""
    return attempts[-1].number - attempts[0].number + 1 - len(attempts) if attempts else 0


def with_attempt(words: bytes | None, attempt: PastAttempt) -> bytes | None:
    """The words with one attempt more. The history begins anew with a number that is not behind the others."""
    facts = decode_words(words)
    before = _decode(facts.get(TRIES, b""))
    if before and before[-1].number >= attempt.number:
        before = ()
    facts.pop(TRIES, None)
    if value := _encode_bounded((*before, attempt)):
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


def _encode_bounded(attempts: tuple[PastAttempt, ...]) -> bytes:
    kept = [*attempts[:1], *attempts[1:][-LAST:]]
    while kept:
        for longest in TEXTS:
            value = b"|".join(_encode(kept, longest))
            if len(encode_words({TRIES: value}) or b"") <= LONGEST:
                return value
        del kept[1 if len(kept) > 2 else 0]
    return b""


def _encode(attempts: list[PastAttempt], longest: int) -> list[bytes]:
    encoded, last = [], b""
    for one in attempts:
        decided = _LETTERS[one.decided] + (b"%d" % one.wait_s if one.decided == DEFERRED else b"")
        text = one.text if len(one.text) <= longest else one.text[: max(0, longest - len(CUT))] + CUT
        fields = one.tls[:MAX_TLS], one.host[:MAX_HOST], b"%03d" % one.code, one.enhanced[:MAX_TLS], text
        said = b",".join(_UNSAFE.sub(_escape, field) for field in fields)
        head = b"%d,%d,%b" % (one.number, one.at, decided)
        encoded.append(head if said == last else head + b"," + said)
        last = said
    return encoded


def _decode(value: bytes) -> tuple[PastAttempt, ...]:
    attempts: list[PastAttempt] = []
    said: tuple[bytes, bytes, int, bytes, bytes] | None = None
    for part in value.split(b"|") if value else ():
        found = _ATTEMPT(part)
        if found is None:
            return ()
        number, at, wait_s, letter, tls, host, code, enhanced, text = found.groups()
        if code is not None:
            said = _unquote(tls), _unquote(host), int(code), _unquote(enhanced), _unquote(text)
        if said is None or (attempts and int(number) <= attempts[-1].number):
            return ()
        decided = DEFERRED if letter is None else _DECIDED[letter]
        attempts.append(PastAttempt(int(number), int(at), decided, int(wait_s or 0), *said))
    return tuple(attempts)


def _escape(found: re.Match[bytes]) -> bytes:
    return b"+" if found[0] == b" " else b"%%%02X" % found[0][0]


def _unquote(field: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes((int(found[1], 16),)), field.replace(b"+", b" "))
