"""One recipient of one message as a line of text: in an envelope, in local and remote files, and a note in bounce.

    STATE AREA LINE CRC LF

STATE is one byte: a space while the recipient is to be served, `x` when it is done; it is overwritten in place, and alone
outside the CRC. AREA is `I` (incoming), `D` (deferred) or `B` (bounces). LINE is a recipient line
(`queue.files.recipient_line`) without its own state and CRC: it says all that the queue knows of the message and of the
recipient.

*Rules*: a line that does not check counts as not there. One whose STATE is anything else is to be served: a power cut may
leave any byte there while it is overwritten. Of several lines of one recipient in one file the last one counts.

Source: `docs/formats/chunk`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from mailismus.mail.ids import QueueId, parse_queue_id
from mailismus.queue.files.recipient_line import LIVE, format_lines, parse_line
from mailismus.queue.interface import Area, Entry, Message

_LETTERS = {Area.INCOMING: b"I", Area.DEFERRED: b"D", Area.BOUNCES: b"B", Area.HELD: b"H", Area.DELETED: b"X"}
AREAS = {letter: area for area, letter in _LETTERS.items()}
"""By the letter in a line."""
_CRC_SIZE = 9
"""Bytes of the space before the CRC, and of the CRC."""
ENDS = b"E"
"""The letter of a line that names an entry of another message, which this envelope's commit ends."""


def format_chunk_lines(message: Message, entries: Sequence[Entry]) -> list[bytes]:
    """The lines of these entries, not done, each with its LF."""
    lines = []
    for entry in entries:
        line = format_lines(message, [entry])
        body = _LETTERS[entry.area] + line[1 : -_CRC_SIZE - 1]
        lines.append(LIVE + body + b" %08x\n" % zlib.crc32(body))
    return lines


def format_ends(ended: Sequence[QueueId]) -> list[bytes]:
    """The lines of an envelope that end these entries of other messages."""
    lines = []
    for queue_id in ended:
        body = ENDS + b" " + str(queue_id).encode("ascii")
        lines.append(LIVE + body + b" %08x\n" % zlib.crc32(body))
    return lines


def checked_body(line: bytes) -> bytes | None:
    """What the CRC of a line (without its LF) covers; None: the line does not check."""
    body, crc = line[1:-_CRC_SIZE], line[-_CRC_SIZE:]
    return body if crc == b" %08x" % zlib.crc32(body) else None


def parse_body(body: bytes) -> tuple[Message, Entry] | None:
    """Message (without entries) and entry of a line's body; None: it is no line of a recipient."""
    area = AREAS.get(body[:1])
    if area is None:
        return None
    rest = body[1:]
    return parse_line(LIVE + rest + b" %08x" % zlib.crc32(rest), area)


def parse_ends(body: bytes) -> QueueId | None:
    """The entry that a line's body ends; None: it is no such line."""
    if body[:2] != ENDS + b" ":
        return None
    return parse_queue_id(body[2:].decode("latin-1"))
