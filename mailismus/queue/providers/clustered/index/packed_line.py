"""Packed line: a line that waits in memory for its time, as bytes: a quarter of what its objects take (pure).

A line is packed when it begins to wait and unpacked when it is looked at again, once each. Packed bytes stay in this
process: they are no format, and nothing that comes from a file or a peer is ever unpacked.

*Not here*: offset and time of the line (`waiting_lines`), its form on disk (`queue.files.recipient_line`).
"""

from __future__ import annotations

import marshal

from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import FoundLine

_VERSION = 2
"""Of `marshal`: floats as they are in memory, and no table of repeated objects, which would cost more than it saves."""


def pack(line: FoundLine) -> bytes:
    """Return the facts of a live line, but for its offset and its area."""
    message, entry = line.message, line.entry
    reply = entry.reply
    return marshal.dumps(
        (
            (
                message.spool_id,
                message.sender,
                message.client,
                message.eightbit,
                message.received_at,
                message.size_bytes,
                message.recipient_count,
                message.stuffed_dots,
                message.words,
            ),
            entry.number,
            entry.recipient,
            entry.due_at,
            entry.attempts,
            None if reply is None else (reply.code, reply.enhanced, reply.text),
            entry.host,
            entry.words,
        ),
        _VERSION,
    )


def unpack(offset: int, area: Area, packed: bytes) -> FoundLine:
    """Return the line that was packed, in a cluster of this area."""
    message, number, recipient, due_at, attempts, reply, host, words = marshal.loads(packed)
    spool_id, sender, client, eightbit, received_at, size_bytes, recipient_count, stuffed_dots, message_words = message
    return FoundLine(
        offset,
        False,
        Message(
            *(spool_id, sender, client, eightbit, received_at, size_bytes, recipient_count, [], stuffed_dots, message_words)
        ),
        Entry(number, recipient, area, due_at, attempts, None if reply is None else Reply(*reply), host, words),
    )
