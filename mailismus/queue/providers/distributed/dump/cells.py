"""A row as it is, and a share in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from mailismus.mail.ids import format_spool_id
from mailismus.observe.text import shown
from mailismus.queue.interface import Entry
from mailismus.queue.providers.distributed.format.marks import name_of
from mailismus.queue.providers.distributed.format.names import share_name
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.trigger import read_trigger
from mailismus.queue.providers.distributed.stores.rows import Row, Value


def time_text(at: float) -> str:
    """A time for people; one that no calendar has as it is."""
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{at:.3f}"


def share_lines(share: Share) -> Iterator[str]:
    """What is said of the message, and the entries."""
    message, origin = share.message, share.origin
    eightbit = ", 8-bit" if message.eightbit else ""
    yield f"  message {format_spool_id(message.spool_id)} from <{shown(message.sender)}>, client {shown(message.client)}"
    received = f"{message.recipient_count} recipients in all, received {time_text(message.received_at)}"
    yield f"  {message.size_bytes} bytes{eightbit}, {received}"
    yield f"  put in {time_text(share.enqueued_at)}, due {time_text(share.due_at)}"
    yield f"  content {shown(share.blob.key.encode())}, SHA-256 {share.blob.sha256.hex()}"
    if origin is not None:
        yield f"  moved from {share_name(origin)}"


def entry_text(entry: Entry) -> str:
    """An entry."""
    reply = "" if entry.reply is None else f", last reply {entry.reply.code} {shown(entry.reply.text)}"
    host = f" of {shown(entry.host)}" if entry.host.strip(b"-") else ""
    return f"  entry {entry.number}: <{shown(entry.recipient)}>, {entry.attempts} attempts{reply}{host}"


def mark_text(row: Row) -> str:
    """A mark."""
    number, said = row["number"], []
    for cell, word in (("done_at", "delivered or reported"), ("removed_at", "removed")):
        at = row[cell]
        if isinstance(at, int | float):
            said.append(f"{word} {time_text(at)}")
    for cell in ("bounced_to", "moved_to"):
        goes_to = row[cell]
        if not isinstance(goes_to, bytes):
            continue
        trigger = read_trigger(goes_to)
        said.append("moved to where DOES NOT CHECK" if trigger is None else f"moved to {share_name(name_of(trigger))}")
    whose = "all entries without a mark of their own" if number == 0 else f"entry {number!r}"
    return f"  mark of {whose}: {', '.join(said) or 'it says nothing'}"


def row_text(row: Row) -> str:
    """A row as it is, without the cells that were never set."""
    return ", ".join(f"{name}={_value_text(value)}" for name, value in row.items() if value is not None)


def _value_text(value: Value) -> str:
    return shown(value if isinstance(value, bytes) else str(value).encode("utf-8", "backslashreplace"))
