"""The notice: the first part of a report, for a person (pure).

It says what happened, to which address, on whose side, what to do now, and the remote host's reply, verbatim where that is
safe. Recipients for which all this is equal are listed together.

*Rules*: ASCII alone, but for addresses in UTF-8; lines of at most `WIDTH` where words allow, never more than
998 bytes. Text from others is escaped (`observe.text.plain`) and indented, so that it can't pass for ours.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from mailismus.mail.address import domain_of, parse_utf8_path
from mailismus.mail.attempts import attempts_of
from mailismus.mail.ids import format_spool_id
from mailismus.mail.reply import MAX_TEXT, Reply
from mailismus.observe.text import plain
from mailismus.queue.interface import Entry, Message
from mailismus.report.verdict import find_verdict
from mailismus.report.wording import LOCAL, NO_SERVER, Cause, cause_of
from mailismus.smtp.trace import date_time

WIDTH = 72
MAX_WORD = 400
"""Longer words are split."""

OWN = "This server noted:"
"""The heading of our own words."""

_HOST = re.compile(rb"([^\[\]]+)\[([0-9A-Fa-f.:]+)\]:(\d+)").fullmatch


def format_reply(reply: Reply) -> str:
    """A reply in one safe line, with at most `MAX_TEXT` bytes of its text."""
    text = plain(reply.text[:MAX_TEXT]).decode("ascii")
    status = plain(reply.enhanced[:20]).decode("ascii")
    return " ".join(f"{reply.code:03} {status} {text}".split())


def safe_address(address: bytes) -> str:
    """An address as in the envelope, in UTF-8 too. One that does not pass the grammar is escaped and cut."""
    if not address.isascii() and parse_utf8_path(address) is not None:
        return address.decode("utf-8")
    return plain(address).decode("ascii")[:900]


def split_words(text: str) -> list[str]:
    """The words of a safe line; a word that is too long for any line is split."""
    return [word[at : at + MAX_WORD] for word in text.split() for at in range(0, len(word), MAX_WORD)]


def write_notice(
    host: bytes, contact: bytes, message: Message, report_id: int, subject: str, returned: str
) -> Iterator[str]:
    """The lines, without line ends. `host`: our name. `contact`: the address for questions. `subject`: the message's own,
    safe, or empty. `returned`: the sentence about the part that follows."""
    entries = message.entries
    name = plain(host).decode("ascii")
    count, of = len(entries), message.recipient_count
    whom = (
        "its recipient"
        if count == of == 1
        else f"{_number(count)} of its {of} recipients"
        if count < of
        else (f"its {count} recipients")
    )
    yield from _wrap(
        f"This is the mail server {name}. A message of yours could not be delivered to {whom}, and will not be tried again. "
        "What to do is said below for each address."
    )
    yield ""
    if subject:
        yield from _wrap(subject, "    Subject:     ", " " * 17)
    yield f"    Received:    {_date(message.received_at)}"
    yield f"    Our number:  {format_spool_id(message.spool_id)}"
    for together in _groups(entries):
        yield ""
        yield ""
        for entry in together:
            yield f"<{safe_address(entry.recipient)}>"
            if entry.original_recipient is not None:
                yield f"    redirected to <{safe_address(entry.final_recipient)}>"
        yield ""
        yield from _explain(message, together)
    yield ""
    yield ""
    if count < of:
        yield from _wrap(
            "For recipients that are not named here the message has arrived, is still on its way, "
            "or has a report of its own."
        )
        yield ""
    yield from _wrap(returned)
    yield ""
    yield from _wrap(
        f"This report was made by a program, and has the number {report_id:016X}. Questions about it go to "
        f"{plain(contact).decode('ascii')}."
    )


def _groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries with equal explanations, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in entries:
        first = _first_attempt(entry)
        key = (domain_of(entry.final_recipient), entry.reply, entry.host, entry.attempts, int(entry.due_at), first)
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _explain(message: Message, together: Sequence[Entry]) -> Iterator[str]:
    entry = together[0]
    reply, indent = entry.reply, "    "
    verdict = find_verdict(reply, format_host(entry.host))
    cause = cause_of(reply, entry.host) if verdict is None else verdict.cause
    words = cause.value
    domain = plain(domain_of(entry.final_recipient)).decode("ascii") or "this server"
    yield from _wrap(f"{words.event.replace('{domain}', domain)} {words.side.replace('{domain}', domain)}", indent)
    yield from _wrap(f"What to do: {words.advice}", indent)
    if reply is not None:
        yield ""
        yield from _wrap(OWN if verdict is not None else _reply_heading(entry, reply, cause), indent)
        yield from _wrap(format_reply(reply if verdict is None else verdict.told), indent * 2)
    yield ""
    last = _date(last_attempt_at(entry))
    if entry.attempts <= 1:
        yield from _wrap(f"It was {'tried once, on' if entry.attempts else 'given up untried, on'} {last}.", indent)
        return
    tried = f"It was tried {entry.attempts} times"
    if reply is not None and not reply.is_permanent:
        tried += f" in {_duration(entry.due_at - message.received_at)}"
    first = _first_attempt(entry)
    if first:
        tried += f", first on {first}"
    yield from _wrap(f"{tried}, the last time on {last}.", indent)


def last_attempt_at(entry: Entry) -> float:
    """When the entry was tried last (UTC seconds); of one that was never tried: when it was given up. An administrator may
    return an entry long behind its last attempt."""
    attempts = attempts_of(entry.words)
    return attempts[-1].at if attempts and attempts[-1].number == entry.attempts else entry.due_at


def _first_attempt(entry: Entry) -> str:
    """The date of the first attempt; empty: it is not known."""
    attempts = attempts_of(entry.words)
    return _date(attempts[0].at) if attempts and attempts[0].number == 1 else ""


def _reply_heading(entry: Entry, reply: Reply, cause: Cause) -> str:
    """The heading of the last reply. It names a host as the speaker only if that is certain: our own reply may be about a
    host too."""
    host = format_host(entry.host)
    if entry.host == LOCAL or entry.host in NO_SERVER or not host:
        return OWN
    if not reply.is_permanent and (cause is Cause.IN_DOUBT or reply.enhanced[1:3] == b".4"):
        return f"What came of the last try with {host}:"
    return f"The server {host} answered:"


def host_name(host: bytes) -> bytes:
    """The name, or else the address, of a host as in `Outcome.host`; empty for this server and for none."""
    found = _HOST(host)
    return found[1] if found else b""


def format_host(host: bytes) -> str:
    """A host for people: name, address, and a port other than 25."""
    found = _HOST(host)
    if found is None:
        return ""
    name, address, port = (plain(part).decode("ascii") for part in found.groups())
    shown = address if name == address else f"{name} [{address}]"
    return shown if port == "25" else f"{shown} port {port}"


def _number(count: int) -> str:
    return "one" if count == 1 else str(count)


def _date(at: float) -> str:
    return date_time(max(0, int(at))).decode("ascii")


def _duration(seconds: float) -> str:
    """A duration in the largest unit of which it has at least two."""
    for unit, size_s in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.0f} {unit}"
    return "1 second" if 0.5 <= seconds < 1.5 else f"{max(0.0, seconds):.0f} seconds"


def _wrap(text: str, first: str = "", others: str | None = None) -> list[str]:
    return textwrap.wrap(
        " ".join(split_words(text)),
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if others is None else others,
        break_long_words=False,
        break_on_hyphens=False,
    )
