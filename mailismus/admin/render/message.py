"""One message as names with texts, and as lines of them (pure): its envelope, then each recipient with its attempts.

*Rules*: as in `listing`: of any address or reply only printable characters reach a terminal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import tzinfo

from mailismus.admin.model.noted import NotedEntry
from mailismus.admin.render.attempts import attempt_lines
from mailismus.admin.render.listing import due_moment
from mailismus.mail.ids import act_name, format_spool_id
from mailismus.observe.amounts import moment
from mailismus.observe.text import shown
from mailismus.queue.acts.marking import note_of
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.redirect import redirects_of
from mailismus.smtp.trace import CameIn

_FORM = "%a %b %d %H:%M:%S %Y"

Field = tuple[str, str]
"""A name, and what is told."""


def envelope_fields(message: Message, came_in: CameIn | None, zone: tzinfo | None = None) -> Iterator[Field]:
    """Return what is told of the message, in order. `came_in`: how it did, None: not known. `zone`: the time zone of the
    times shown, None for the local one."""
    yield "message", format_spool_id(message.spool_id)
    yield "sender", f"<{shown(message.sender)}>"
    yield "client", shown(message.client)
    yield "protocol", "-" if came_in is None else shown(_describe(came_in))
    yield "arrival", moment(message.received_at, zone, _FORM)
    yield "size", f"{message.size_bytes} bytes"
    yield "content", "8BITMIME" if message.eightbit else "7BIT"
    yield "recipients", f"{message.recipient_count} in the envelope"


def entry_fields(message: Message, entry: Entry, zone: tzinfo | None = None) -> Iterator[Field]:
    """Return what is told of one recipient, in order."""
    yield "recipient", f"<{shown(entry.final_recipient)}>"
    if entry.original_recipient is not None:
        yield "originally", f"<{shown(entry.original_recipient)}>"
    yield "queue id", f"{format_spool_id(message.spool_id)}-{entry.number}"
    yield "area", entry.area.value
    yield "attempts", str(entry.attempts)
    yield _DUE.get(entry.area, "next attempt"), due_moment(entry.due_at, zone, _FORM)
    yield "last reply", shown(bytes(entry.reply)) if entry.reply is not None else "none: not tried yet"
    yield "host", shown(entry.host)
    for one in redirects_of(entry.words)[:1]:
        yield "redirected", f"{shown(one.target.encode())}, by act {act_name(one.act)}"
    note = note_of(entry)
    if note is None and isinstance(entry, NotedEntry):
        note = entry.note
    if note is not None:
        yield "now", shown(note)
    yield from attempt_lines(entry, zone)


def envelope_lines(
    message: Message, came_in: CameIn | None, zone: tzinfo | None = None, *, is_one_recipient: bool = False
) -> Iterator[str]:
    """Return the lines about the message, for a terminal. As `envelope_fields`; `is_one_recipient`: only one recipient was
    asked for, and follows."""
    *fields, (name, recipients) = envelope_fields(message, came_in, zone)
    following = "the one asked for:" if is_one_recipient else "still in the queue:"
    return itertools.starmap(_line, (*fields, (name, f"{recipients}; {following}")))


def entry_lines(message: Message, entry: Entry, zone: tzinfo | None = None) -> Iterator[str]:
    """Return the lines about one recipient, for a terminal, behind an empty one."""
    return itertools.chain(("",), itertools.starmap(_line, entry_fields(message, entry, zone)))


_DUE = {Area.BOUNCES: "report due", Area.HELD: "held until", Area.DELETED: "kept until"}


def _describe(came_in: CameIn) -> bytes:
    """`ESMTPS, TLSv1.3 with cipher ...`."""
    return b"%b, %b" % (came_in.protocol, came_in.tls) if came_in.tls else came_in.protocol


def _line(name: str, value: str) -> str:
    return f"{name + ':':<13} {value}"
