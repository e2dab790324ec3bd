"""Why entries are still in the queue, as text and JSON (pure): a line for each entry, below it one for each kept attempt.

*Rules*: as in `listing`: of any address or reply only printable characters reach a terminal, and JSON is ASCII.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from mailismus.admin.model.noted import Known, NotedEntry
from mailismus.admin.render.attempts import attempt_lines, attempt_rows
from mailismus.admin.render.listing import NULL_SENDER, orig_address, reason_of
from mailismus.mail.ids import format_spool_id
from mailismus.observe.text import shown
from mailismus.queue.acts.marking import FOR_EVER
from mailismus.queue.files.recipient_line import stored_seconds
from mailismus.queue.interface import Message

NOTHING_KNOWN = "no entry, and nothing is known of its mail hosts"


def why_lines(message: Message, *, with_attempts: bool = True) -> Iterator[str]:
    """Return a line for each entry: its id, area, attempts, sender and recipient, and the reason; below it its attempts."""
    spool_id = format_spool_id(message.spool_id)
    sender = shown(message.sender) if message.sender else NULL_SENDER
    for entry in message.entries:
        attempts = f"{entry.attempts} attempt{'s' if entry.attempts != 1 else ''}"
        of = f"{spool_id}-{entry.number} {entry.area.value}, {attempts}, from {sender} to {shown(entry.final_recipient)}"
        yield f"{of}: {shown(reason_of(entry))}"
        for label, text in attempt_lines(entry) if with_attempts else ():
            yield f"    {label}: {text}"


def why_json(message: Message) -> Iterator[str]:
    """Return each entry as a JSON object, a line without its end, with the member names of `queue list`."""
    for entry in message.entries:
        yield json.dumps(
            {
                "queue_name": entry.area.value,
                "queue_id": format_spool_id(message.spool_id),
                "number": entry.number,
                "arrival_time": stored_seconds(message.received_at),
                "sender": _text(message.sender) if message.sender else NULL_SENDER,
                "address": _text(entry.final_recipient),
                **orig_address(entry),
                "attempts": entry.attempts,
                "next_attempt": stored_seconds(entry.due_at) if entry.due_at < FOR_EVER else None,
                "hold": entry.hold if isinstance(entry, NotedEntry) else "",
                "reason": _text(reason_of(entry)),
                "tried": list(attempt_rows(entry)),
            }
        )


def known_lines(word: str, known: Known | None) -> Iterator[str]:
    """Return what is known of a domain without entries. `word`: as it was asked for."""
    name = shown(word.encode("utf-8", "surrogateescape"))
    if known is None:
        yield f"{name}: {NOTHING_KNOWN}"
        return
    yield f"{name}: no entry in the queue"
    for line in known.lines:
        yield f"  {shown(line)}"


def known_json(word: str, known: Known | None) -> str:
    """Return the same as a JSON object."""
    lines = [] if known is None else [_text(line) for line in known.lines]
    return json.dumps({"asked": _text(word.encode("utf-8", "surrogateescape")), "known": lines})


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
