"""Entries that were searched for, as values for their template (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo

import attrs

from mailismus.admin.model.left_out import left_out
from mailismus.admin.model.noted import NotedEntry
from mailismus.admin.render.listing import NULL_SENDER, due_moment, due_word, reason_of
from mailismus.mail.ids import format_spool_id
from mailismus.observe.amounts import lasting, size
from mailismus.observe.grades import PLAIN, grade_of_hold
from mailismus.observe.text import shown
from mailismus.queue.interface import Area, Entry, Gap, Message

FORM = "%a %b %d %H:%M:%S"
EXAMPLES = (
    "domain=*.example",
    "sender=*@our.example older=2h",
    "area=deferred larger=1M",
    'reply="connection refused"',
    "recipient=joe@*",
)

_NARROWER = "Write more words, or use mailismus queue list."


@attrs.frozen
class EntryRow:
    """One entry."""

    id: str
    area: str
    age: str
    size: str
    sender: str
    recipient: str
    attempts: int
    due: str
    reason: str
    grade: str


@attrs.frozen
class SearchExtent:
    """How far a search came. `is_cut`: there may be more entries that match; `is_late`: the time was over before the end."""

    looked_at: int
    took_s: float
    is_cut: bool
    is_late: bool
    gaps: Sequence[Gap] = ()


def listing_values(
    messages: Sequence[Message],
    known: Sequence[bytes],
    looked: SearchExtent,
    now: float,
    zone: tzinfo | None = None,
    *,
    skipped: int = 0,
    next_skip: int | None = None,
) -> dict[str, object]:
    """The values. `known`: what is known of the domain that was asked for; `now`: UTC seconds; `skipped`: entries on the
    pages before this one; `next_skip`: before the next one, None: there is none."""
    rows = [row for message in messages for row in _rows(message, now, zone)]
    if looked.is_late:
        end = f"The search ended after {looked.took_s:.0f} s, with {looked.looked_at:,} entries looked at: write more words."
    elif looked.is_cut and skipped:
        end = f"These are {skipped + 1} to {skipped + len(rows)}, as the queue is now: there may be more."
        end += "" if next_skip is not None else f" {_NARROWER}"
    elif looked.is_cut:
        end = f"These are the first {len(rows)}: there may be more. {_NARROWER}"
    else:
        end = ""
    return {
        "rows": rows,
        "known": list(map(shown, known)),
        "end": end,
        "gaps": left_out(looked.gaps) if looked.gaps else "",
        "examples": EXAMPLES,
        "skipped": skipped,
        "next_skip": next_skip,
    }


def _rows(message: Message, now: float, zone: tzinfo | None) -> Iterator[EntryRow]:
    for entry in message.entries:
        yield EntryRow(
            f"{format_spool_id(message.spool_id)}-{entry.number}",
            entry.area.value,
            lasting(max(0.0, now - message.received_at)),
            size(message.size_bytes),
            shown(message.sender) if message.sender else NULL_SENDER,
            shown(entry.final_recipient),
            entry.attempts,
            f"{due_word(entry.area)} {due_moment(entry.due_at, zone, FORM)}",
            shown(reason_of(entry)),
            grade_of_entry(entry),
        )


def grade_of_entry(entry: Entry) -> str:
    """How bad it is that an entry waits."""
    if isinstance(entry, NotedEntry):
        return grade_of_hold(entry.hold)
    if entry.area is Area.BOUNCES:
        return grade_of_hold("report")
    return PLAIN if entry.reply is None else grade_of_hold("later")
