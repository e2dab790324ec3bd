"""One message with its entries, as values for its template (pure): what `queue show` tells, by the same functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo

import attrs

from mailismus.admin.model.left_out import left_out
from mailismus.admin.render.content import harmless_lines
from mailismus.admin.render.listing import reason_of
from mailismus.admin.render.message import Field, entry_fields, envelope_fields
from mailismus.mail.ids import format_spool_id, spool_name
from mailismus.observe.amounts import moment
from mailismus.observe.text import shown
from mailismus.queue.interface import Message
from mailismus.smtp.trace import read_received
from mailismus.web.pages.listing import FORM, SearchExtent, grade_of_entry


@attrs.frozen
class ShownHeader:
    """The header of a message. `is_whole`: that is all of it; `trouble`: why it can't be read."""

    data: bytes = b""
    is_whole: bool = True
    trouble: str = ""


@attrs.frozen
class EntryPart:
    """One recipient. `why`: why it is still here."""

    id: str
    grade: str
    why: str
    fields: Sequence[Field]


def message_values(
    messages: Sequence[Message],
    header: ShownHeader,
    looked: SearchExtent,
    zone: tzinfo | None = None,
    *,
    is_one_recipient: bool = False,
    found_at: float | None = None,
) -> dict[str, object]:
    """The values. `messages`: parts of one message, one at least. `is_one_recipient`: only one recipient was asked for.
    `found_at`: when these parts were found; None: now."""
    first = messages[0]
    came_in = read_received(header.data, spool_name(first.spool_id))
    return {
        "id": format_spool_id(first.spool_id),
        "envelope": list(envelope_fields(first, came_in, zone)),
        "following": "The recipient asked for" if is_one_recipient else "Recipients still in the queue",
        "entries": [part for message in messages for part in _parts(message, zone)],
        "found_at": "" if found_at is None else moment(found_at, zone, FORM),
        "is_cut": (looked.is_cut or looked.is_late) and not is_one_recipient,
        "gaps": left_out(looked.gaps) if looked.gaps else "",
        "header": list(harmless_lines([header.data])),
        "goes_on": not header.is_whole,
        "trouble": header.trouble,
    }


def _parts(message: Message, zone: tzinfo | None) -> Iterable[EntryPart]:
    for entry in message.entries:
        prefix = f"{format_spool_id(message.spool_id)}-{entry.number}"
        told = shown(reason_of(entry))
        fields = [(name, text) for name, text in entry_fields(message, entry, zone) if name != "now"]  # it is told above
        yield EntryPart(prefix, grade_of_entry(entry), told, fields)
