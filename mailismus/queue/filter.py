"""FILTER: the words by which an administrator selects entries (pure).

An ID (a spool id, or a queue id `SPID-N`), or one of `sender= recipient= domain= client=` (a GLOB: `*` any bytes, `?` one
character; case is ignored), `area=`, `older= younger=` (age of the message), `larger=` (bytes), `reply=` (a part of the
last reply, case is ignored). Several are ANDed, two of a kind too. Deleted entries match `area=deleted` alone. The recipient
of an entry that an act redirected is the one to which it goes.

*Rules*: an invalid word is refused with a hint; no word matches by mistake.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

import attrs

from mailismus.config.values.units import UnitError, parse_size, parse_time_ms
from mailismus.mail.address import domain_of
from mailismus.mail.ids import SpoolId, format_spool_id, parse_queue_id, parse_spool_id
from mailismus.mail.utf8 import to_ascii_domain
from mailismus.queue.interface import Area, Entry, Filter, Message, Predicate, everything

FORMS = (
    "ID, sender=GLOB, recipient=GLOB, domain=GLOB, client=GLOB, area=incoming|deferred|bounces|hold|deleted, older=TIME, "
    "younger=TIME, larger=SIZE or reply=TEXT"
)

ARRIVAL_WORDS = frozenset(("sender", "recipient", "domain", "client", "larger"))
"""Words that select mail to come: their facts are known of a message that has just arrived."""
ARRIVAL_FORMS = "sender=GLOB, recipient=GLOB, domain=GLOB, client=GLOB or larger=SIZE"
MOST_ARRIVAL_WORDS = 20
"""Words of one filter of mail to come: each message is asked about them."""

SUBJECTS = "an ID (16 upper-case hexadecimal digits, with -N behind them for one recipient), an address or a domain"


class FilterError(ValueError):
    """A word is no filter; the message tells what to write instead."""


def parse_filter(words: Sequence[str], now: float) -> Filter:
    """Return the filter of all these words together; without words: every entry. Raises `FilterError`.

    `now`: UTC seconds; ages count from it.
    """
    spool_id: SpoolId | None = None
    area: Area | None = None
    tests: list[Predicate] = []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            word_spool_id, test = _id(word)
            if spool_id is not None and spool_id != word_spool_id:
                tests.append(_nothing)
            spool_id = word_spool_id
            if test is not None:
                tests.append(test)
        elif key == "area":
            word_area = _area(word, value)
            if area is not None and area is not word_area:
                tests.append(_nothing)
            area = word_area
        elif key in _TESTS:
            tests.append(_TESTS[key](word, value, now))
        else:
            raise FilterError(f"{_quoted(word)} is no filter: write {FORMS}")
    if area is None and words:
        tests.append(_is_not_deleted)
    return Filter(spool_id, area, _all_of(tests))


def named_message(words: Sequence[str]) -> SpoolId | None:
    """Return the message of an ID among the words of a filter: no other one matches. None: there is no ID."""
    for word in words:
        queue_id = parse_queue_id(word)
        spool_id = parse_spool_id(word) if queue_id is None else queue_id.spool_id
        if spool_id is not None:
            return spool_id
    return None


def parse_arrival_filter(words: Sequence[str]) -> Predicate:
    """Return which entries of new mail these words select; without words: every one. Raises `FilterError`, for words about
    mail that is in the queue too."""
    for word in words:
        key, equals, _ = word.partition("=")
        if not equals or key not in ARRIVAL_WORDS:
            raise FilterError(f"{_quoted(word)} selects no mail to come: write {ARRIVAL_FORMS}")
    if len(words) > MOST_ARRIVAL_WORDS:
        raise FilterError(f"{len(words)} words are too many for mail to come: write at most {MOST_ARRIVAL_WORDS}")
    return parse_filter(words, 0.0).matches


@attrs.frozen
class Subject:
    """What a person asks about in one word. `domain`: that of a recipient's address, or the one asked for; empty: the word
    is an ID. `is_domain`: the word is a domain."""

    wanted: Filter
    domain: bytes = b""
    is_domain: bool = False


def parse_subject(word: str) -> Subject:
    """Return the entries of an ID, a recipient's address or a recipient's domain: these exactly, whatever the letters' case,
    and those that an act redirected from there too. Raises `FilterError`."""
    if parse_spool_id(word) is not None or parse_queue_id(word) is not None:
        spool_id, test = _id(word)
        return Subject(Filter(spool_id, None, test or everything))
    given = word[1:-1] if word[:1] == "<" and word[-1:] == ">" else word
    name = _bytes(given.rstrip(".")).lower()
    if not name or (b"@" not in name and (b"=" in name or len(name.split()) != 1)):
        raise FilterError(f"{_quoted(word)}: write {SUBJECTS}")
    if name.rpartition(b"@")[0]:
        return Subject(
            Filter(None, None, lambda message, entry: name in map(bytes.lower, _addresses(entry))), domain_of(name)
        )
    domain = domain_of(b"@" + name.removeprefix(b"@"))
    if not domain:
        raise FilterError(f"{_quoted(word)}: write {SUBJECTS}")
    return Subject(Filter(None, None, lambda message, entry: domain in map(domain_of, _addresses(entry))), domain, True)


def _addresses(entry: Entry) -> tuple[bytes, ...]:
    """Return where an entry goes, and where it was to go."""
    final = entry.final_recipient
    return (final,) if final == entry.recipient else (final, entry.recipient)


def _all_of(tests: Sequence[Predicate]) -> Predicate:
    if not tests:
        return everything
    if len(tests) == 1:
        return tests[0]
    return lambda message, entry: all(test(message, entry) for test in tests)


def _is_not_deleted(message: Message, entry: Entry) -> bool:
    return entry.area is not Area.DELETED


def _nothing(message: Message, entry: Entry) -> bool:
    return False


def _id(word: str) -> tuple[SpoolId, Predicate | None]:
    spool_id = parse_spool_id(word)
    if spool_id is not None:
        return spool_id, None
    queue_id = parse_queue_id(word)
    if queue_id is None:
        raise _not_an_id(word)
    number = queue_id.number
    return queue_id.spool_id, lambda message, entry: entry.number == number


def _not_an_id(word: str) -> FilterError:
    """The error for a word without `=`. An address or a domain is what `why` takes."""
    example = format_spool_id(SpoolId(0x10000002A))
    told = f"write {FORMS}; an ID is 16 upper-case hexadecimal digits ({example}), with -N behind them for one recipient"
    quoted, key = _quoted(word), "recipient" if "@" in word else "domain"
    is_name = "." in word and quoted == f'"{word}"'
    meant = f"; did you mean {key}={word}? Else" if is_name else ":"
    return FilterError(f"{quoted} is no filter{meant} {told} ({example}-1)")


def _area(word: str, value: str) -> Area:
    try:
        return Area(value)
    except ValueError:
        raise FilterError(
            f"{_quoted(word)}: write area=incoming, area=deferred, area=bounces, area=hold or area=deleted"
        ) from None


def _sender(word: str, value: str, now: float) -> Predicate:
    matches = _glob(word, value)
    return lambda message, entry: matches(message.sender)


def _recipient(word: str, value: str, now: float) -> Predicate:
    matches = _glob(word, value)
    return lambda message, entry: matches(entry.final_recipient)


def _domain(word: str, value: str, now: float) -> Predicate:
    if not value.isascii():
        value = (to_ascii_domain(_bytes(value)) or _bytes(value)).decode("utf-8", "surrogateescape")
    matches = _glob(word, value)
    return lambda message, entry: matches(domain_of(entry.final_recipient))


def _client(word: str, value: str, now: float) -> Predicate:
    matches = _glob(word, value)
    return lambda message, entry: matches(message.client)


def _older(word: str, value: str, now: float) -> Predicate:
    before = now - _seconds(word, value)
    return lambda message, entry: message.received_at < before


def _younger(word: str, value: str, now: float) -> Predicate:
    after = now - _seconds(word, value)
    return lambda message, entry: message.received_at > after


def _larger(word: str, value: str, now: float) -> Predicate:
    try:
        size_bytes = parse_size(value)
    except UnitError as error:
        raise FilterError(f"{_quoted(word)}: {error}") from None
    return lambda message, entry: message.size_bytes > size_bytes


def _reply(word: str, value: str, now: float) -> Predicate:
    if not value:
        raise FilterError("reply=: write a part of the reply, as in reply=timeout")
    part = _bytes(value).lower()
    return lambda message, entry: entry.reply is not None and part in bytes(entry.reply).lower()


_VALUES = {
    "sender=": "sender=joe@*, or 'sender=<>' for reports, whose sender is empty",
    "recipient=": "recipient=joe@*",
    "domain=": "domain=example.org",
    "client=": "client=192.0.2.7",
}
"""What to write in place of a word without a value."""

_TESTS: dict[str, Callable[[str, str, float], Predicate]] = {
    "sender": _sender,
    "recipient": _recipient,
    "domain": _domain,
    "client": _client,
    "older": _older,
    "younger": _younger,
    "larger": _larger,
    "reply": _reply,
}


def _seconds(word: str, value: str) -> float:
    try:
        return parse_time_ms(value) / 1000
    except UnitError as error:
        raise FilterError(f"{_quoted(word)}: {error}") from None


def _glob(word: str, value: str) -> Callable[[bytes], bool]:
    """Return a predicate of addresses. `<>` is the null reverse-path. Brackets are no sets of characters here: they belong
    to address literals."""
    if not value:  # as of a script whose variable is not set: it must not act on all reports
        raise FilterError(f"{word}: write a value, as in {_VALUES[word]}")
    if value == "<>":
        value = ""
    pattern = fnmatch.translate(value.replace("[", "[[]"))
    matches = re.compile(pattern, re.IGNORECASE).match
    return lambda address: matches(address.decode("utf-8", "surrogateescape")) is not None


def _bytes(text: str) -> bytes:
    """Return the typed text in UTF-8; bytes of a terminal that are no UTF-8, unchanged."""
    return text.encode("utf-8", "surrogateescape")


def _quoted(word: str) -> str:
    """Return a word of the user for a message: short, and harmless for a terminal."""
    word = word.encode("utf-8", "backslashreplace").decode("utf-8")
    return '"' + "".join(character if character.isprintable() else "?" for character in word[:60]) + '"'
