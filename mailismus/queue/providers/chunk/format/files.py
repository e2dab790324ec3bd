"""The files of one message beside its content: envelope, info, recipients, notes.

    envelope (intd, todo)   a line for each recipient, then for each entry of another message that its commit ends
    info                    one line: SPID, number of recipients, sender
    local, remote, bounce   lines of recipients: what was known of each, one below the other; the last one counts

*Rules*: an envelope is whole or none: its name in todo comes after its sync. In files of recipients lines are appended; what
lies behind the last LF was torn.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import attrs

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import DONE, escape, unescape
from mailismus.queue.interface import Entry, Message
from mailismus.queue.providers.chunk.format.line import (
    checked_body,
    format_chunk_lines,
    format_ends,
    parse_body,
    parse_ends,
)


@attrs.frozen
class LineAt:
    """A line that was read: the entry, whether it is done, where its first byte is, and its bytes with the LF."""

    message: Message
    entry: Entry
    is_done: bool
    offset: int
    size_bytes: int


@attrs.frozen
class ReadLines:
    """The lines of a file. `bad`: offset and length of each that does not check. `torn_bytes`: behind the last LF."""

    lines: tuple[LineAt, ...] = ()
    ended: tuple[QueueId, ...] = ()
    bad: tuple[tuple[int, int], ...] = ()
    torn_bytes: int = 0
    size_bytes: int = 0
    """Of the whole file."""


def format_envelope(message: Message, entries: Sequence[Entry], ended: Sequence[QueueId]) -> bytes:
    """The envelope of a new message."""
    return b"".join(format_chunk_lines(message, entries) + format_ends(ended))


def line_offsets(data: bytes, count: int) -> list[int]:
    """Where the first `count` lines begin."""
    offsets, offset = [], 0
    for _ in range(count):
        offsets.append(offset)
        offset = data.index(b"\n", offset) + 1
    return offsets


def read_lines(data: bytes) -> ReadLines:
    """The lines of an envelope, or of a file of recipients."""
    lines: list[LineAt] = []
    ended: list[QueueId] = []
    bad: list[tuple[int, int]] = []
    offset = 0
    while (end := data.find(b"\n", offset)) >= 0:
        line = data[offset:end]
        body = checked_body(line)
        found = parse_body(body) if body is not None else None
        if found is not None:
            lines.append(LineAt(*found, line[:1] == DONE, offset, end + 1 - offset))
        elif body is not None and (queue_id := parse_ends(body)) is not None:
            ended.append(queue_id)
        else:
            bad.append((offset, end + 1 - offset))
        offset = end + 1
    return ReadLines(tuple(lines), tuple(ended), tuple(bad), len(data) - offset, len(data))


def format_info(message: Message) -> bytes:
    """The info file of a message."""
    body = b"F %016X %d %b" % (message.spool_id, message.recipient_count, escape(message.sender))
    return b"%b %08x\n" % (body, zlib.crc32(body))


def parse_info(data: bytes) -> tuple[SpoolId, int, bytes] | None:
    """SPID, number of recipients and sender of an info file; None: it does not check."""
    body, _, crc = data.removesuffix(b"\n").rpartition(b" ")
    fields = body.split(b" ")
    if not data.endswith(b"\n") or len(fields) != 4 or fields[0] != b"F" or crc != b"%08x" % zlib.crc32(body):
        return None
    try:
        return SpoolId(int(fields[1], 16)), int(fields[2]), unescape(fields[3])
    except ValueError:
        return None
