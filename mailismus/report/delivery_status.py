"""The delivery status: the second part of a report, for programs (RFC 3464; pure).

A block for the message, then one for each recipient, with blank lines between. Every recipient here failed for good or
expired: `Action: failed`. A status 4.x.x, from the last reply, means that the message was tried until it expired.

*Rules*: ASCII alone; fields are folded at blanks; text from others is escaped unless it is plainly printable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mailismus.mail.attempts import PastAttempt, attempts_of
from mailismus.mail.ids import QueueId, format_spool_id
from mailismus.observe.text import plain
from mailismus.queue.interface import Entry, Message
from mailismus.report.notice import format_host, format_reply, host_name, last_attempt_at, safe_address, split_words
from mailismus.report.verdict import find_verdict
from mailismus.smtp.trace import date_time

WIDTH = 76
OWN_TYPE = "x-mailismus"
"""The type of diagnostics that no other server gave (RFC 3464 2.3.6). Such a block names no Remote-MTA (2.3.5)."""

_IS_STATUS = re.compile(rb"[245]\.\d{1,3}\.\d{1,3}").fullmatch
_SPECIAL = re.compile(r"[^!-*,-<>-\[\]-~]")
_IS_ADDRESS = re.compile(rb"[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*").fullmatch


def field(name: str, value: str) -> str:
    """A header field, folded at blanks, without its line end."""
    first, *words = split_words(value) or [""]
    lines = [f"{name}: {first}"]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append("")
        lines[-1] += " " + word
    return "\r\n".join(lines)


def status_of(entry: Entry) -> str:
    """The enhanced status of the last reply, or the nearest one if the reply has none."""
    reply = entry.reply
    if reply is None:
        return "5.0.0"
    if _IS_STATUS(reply.enhanced):
        return reply.enhanced.decode("ascii")
    return "5.0.0" if reply.is_permanent else "4.0.0"


def write_delivery_status(host: bytes, message: Message) -> Iterator[str]:
    """The lines, without line ends (a folded field is one line). `host`: our name."""
    yield field("Reporting-MTA", f"dns; {plain(host).decode('ascii')}")
    yield field("X-Mailismus-Queue-ID", format_spool_id(message.spool_id))
    yield field("Arrival-Date", _date(message.received_at))
    for entry in message.entries:
        yield ""
        yield from _write_recipient(message, entry)


def _write_recipient(message: Message, entry: Entry) -> Iterator[str]:
    if entry.original_recipient is not None:
        yield f"Original-Recipient: {_typed_address(entry.original_recipient)}"
    yield f"Final-Recipient: {_typed_address(entry.final_recipient)}"
    yield "Action: failed"
    yield f"Status: {status_of(entry)}"
    verdict, name = find_verdict(entry.reply, format_host(entry.host)), host_name(entry.host)
    if verdict is not None:
        yield field("Diagnostic-Code", f"{OWN_TYPE}; {format_reply(verdict.told)}")
    elif name:
        yield field("Remote-MTA", f"dns; {_mta_name(name)}")
    if verdict is None and entry.reply is not None:
        yield field("Diagnostic-Code", f"smtp; {format_reply(entry.reply)}")
    if entry.attempts:
        yield field("Last-Attempt-Date", _date(last_attempt_at(entry)))
    if attempts := attempts_of(entry.words):
        yield field("X-Mailismus-Attempts", str(entry.attempts))
        yield from (field("X-Mailismus-Attempt", _attempt(one)) for one in attempts)
    yield field("Final-Log-ID", str(QueueId(message.spool_id, entry.number)))


def _attempt(one: PastAttempt) -> str:
    """An attempt for programs: number, date, host if there was one, code and status, decision. Its text is left out: it may
    be cut, and then `find_verdict` does not know what of it is for administrators alone."""
    status = one.enhanced.decode("ascii") if _IS_STATUS(one.enhanced) else ""
    parts = str(one.number), _date(one.at), format_host(one.host), f"{one.code} {status}".rstrip(), one.decided
    return "; ".join(filter(None, parts))


def _typed_address(address: bytes) -> str:
    """An address with its type. One in UTF-8 is written in ASCII (RFC 6533 3)."""
    text = safe_address(address)
    return f"rfc822; {text}" if text.isascii() else f"utf-8; {_SPECIAL.sub(_escape, text)}"


def _escape(found: re.Match[str]) -> str:
    return f"\\x{{{ord(found[0]):X}}}"


def _mta_name(name: bytes) -> str:
    """A domain, or an address as a literal."""
    text = plain(name).decode("ascii")
    if not _IS_ADDRESS(name):
        return text
    return f"[IPv6:{text}]" if ":" in text else f"[{text}]"


def _date(at: float) -> str:
    return date_time(max(0, int(at))).decode("ascii")
