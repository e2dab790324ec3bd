"""The recipient line: one queue entry as text, in the journal and in clusters alike.

    STATE FORMAT SPID N/COUNT RECEIVED DUE ATTEMPTS SIZE FLAGS CLIENT SENDER RECIPIENT CODE ENHANCED TEXT HOST CRC LF
    ... HOST KEY=VALUE .. key=value .. CRC LF      in files of format 2: words of the message, words of the recipient

One space between fields; an empty field is `-`; bytes outside printable ASCII, space, `%` and a lone `-` are written
`%XX`. Times are UTC milliseconds. The first byte is the state (a space: live; `x`: done) and alone outside the CRC.

SIZE is that of the content as stored. FLAGS are words between commas: `8BITMIME`, and `DOTS=N` where N bytes of it are
dot-stuffing; other words are ignored. A line without words is the same in both formats.

Source: `docs/formats/journal`.
"""

from __future__ import annotations

import re
import zlib

from mailismus.mail.ids import SpoolId, spool_name
from mailismus.mail.reply import Reply
from mailismus.mail.words import LONGEST_WORDS, split_words
from mailismus.queue.interface import Area, Entry, Message

FORMAT = b"A"
_FIELDS = 15
"""Fields of a line between state and CRC, words aside."""
LONGEST_LINE = 6000 + 2 * LONGEST_WORDS
"""Bytes at most: addresses of 254 bytes and a reply of 1,000, all of it escaped, and words."""
LIVE = b" "
DONE = b"x"

_UNSAFE = re.compile(rb"[^!-$&-~]")
_CHANGES_UNSAFE = bytes(ord("!") if _UNSAFE.match(bytes((byte,))) else byte for byte in range(256))
"""A table for `translate` that changes every unsafe byte, and no other."""
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")
_NO_REPLY = b" - - - -"
_EIGHTBIT = b"8BITMIME"
_DOTS = b"DOTS="
_USUAL_FLAGS = {b"-": (False, 0), _EIGHTBIT: (True, 0)}
_ROUNDING = 0.01
"""Milliseconds. A time that was read from a line is written unchanged, and no time is rounded up."""
LINE_SHARE = 10
"""A new entry's line is at most this many times as long as its recipient counts in an envelope (`queue.words`): numbers,
client, sender (382 bytes with its escapes; 762 in UTF-8, which counts 36 more) and a rule's mark are less than 640."""
_NUMBERS_SIZE = 105
"""Bytes of a line, about, without the fields from clients and peers."""
_MOST_SIZE = 1 << 50
_MOST_TIME_MS = 1 << 48
_MOST_COUNT = 1_000_000_000
"""Of recipients, and of attempts."""
_MOST_ID = 1 << 63
"""Each start begins at the next multiple of 2^32; later ids still have 16 digits."""


def stored_seconds(time_s: float) -> int:
    """Return the whole seconds of a time as a line keeps it: what is told of a running queue is what is read of a stopped
    one."""
    return int(time_s * 1000 + _ROUNDING) // 1000


def escape(value: bytes) -> bytes:
    """One field: never empty, no space, nothing but printable ASCII."""
    if value and value.translate(_CHANGES_UNSAFE) == value:
        return value if value != b"-" else b"%2D"
    if not value:
        return b"-"
    return _UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], value)


def unescape(field: bytes) -> bytes:
    """The value that `escape` made the field of."""
    if field == b"-":
        return b""
    if b"%" not in field:
        return field
    return _ESCAPED.sub(lambda found: bytes((int(found[1], 16),)), field)


def format_lines(message: Message, entries: list[Entry]) -> bytes:
    """The live lines of these entries of the message."""
    received_ms = b"%d" % (message.received_at * 1000 + _ROUNDING)
    head = b"A %b " % spool_name(message.spool_id)
    middle = b"/%d %b " % (message.recipient_count, received_ms)
    tail = b" %d %b %b %b " % (
        message.stored_bytes,
        _flags_of(message) if message.stuffed_dots or message.eightbit else b"-",
        escape(message.client),
        escape(message.sender),
    )
    received_at, words = message.received_at, message.words
    lines = []
    for entry in entries:
        due_at, attempts, reply = entry.due_at, entry.attempts, entry.reply
        line = b"".join(
            (
                head,
                b"%d" % entry.number,
                middle,
                received_ms if due_at == received_at else b"%d" % (due_at * 1000 + _ROUNDING),
                b" %d" % attempts if attempts else b" 0",
                tail,
                escape(entry.recipient),
                _NO_REPLY if reply is None else _format_reply(reply, entry.host),
            )
        )
        if words is not None:
            line = b"%b %b" % (line, words)
        if entry.words is not None:
            line = b"%b %b" % (line, entry.words)
        lines.append(b" %b %08x\n" % (line, zlib.crc32(line)))
    return b"".join(lines)


def _format_reply(reply: Reply, host: bytes) -> bytes:
    return b" %d %b %b %b" % (reply.code, escape(reply.enhanced), escape(reply.text), escape(host))


def _flags_of(message: Message) -> bytes:
    if not message.stuffed_dots:
        return _EIGHTBIT if message.eightbit else b"-"
    return b"%b%b%d" % (_EIGHTBIT + b"," if message.eightbit else b"", _DOTS, message.stuffed_dots)


def _parse_flags(field: bytes) -> tuple[bool, int]:
    """Whether the content is 8-bit, and how many bytes of it are dot-stuffing. Raises ValueError."""
    eightbit, stuffed_dots = False, 0
    for flag in field.split(b","):
        if flag == _EIGHTBIT:
            eightbit = True
        elif flag.startswith(_DOTS):
            stuffed_dots = int(flag[len(_DOTS) :])
    return eightbit, stuffed_dots


def numbers_of(line: bytes) -> tuple[float, int, int, int]:
    """Due time (UTC seconds), attempts, stored size, and recipients of the envelope that the message came with, in a line of
    a record that checks. Raises `ValueError` where it is none."""
    fields = line.split(b" ", 8)
    if len(fields) < 9 or fields[1] != FORMAT:
        raise ValueError("no recipient line")
    due_ms, attempts, size = int(fields[5]), int(fields[6]), int(fields[7])
    recipients = int(fields[3].partition(b"/")[2])
    if not (0 <= due_ms < _MOST_TIME_MS and 0 <= attempts < _MOST_COUNT and 0 <= size < _MOST_SIZE):
        raise ValueError("a number is out of range")
    return due_ms / 1000, attempts, size, recipients


def parse_line(line: bytes, area: Area) -> tuple[Message, Entry] | None:
    """Message (without entries) and entry of a line, done or live; None: the line does not check.

    `line` is without its LF.
    """
    body, _, crc_text = line[1:].rpartition(b" ")
    fields = body.split(b" ", _FIELDS)
    if len(fields) < _FIELDS or line[:1] not in (LIVE, DONE) or fields[0] != FORMAT:
        return None
    try:
        if len(crc_text) != 8 or int(crc_text, 16) != zlib.crc32(body):
            return None
        number, _, count = fields[2].partition(b"/")
        received_ms, due_ms, attempts, size = map(int, fields[3:7])
        if not (0 <= received_ms < _MOST_TIME_MS and 0 <= due_ms < _MOST_TIME_MS and 0 <= size < _MOST_SIZE):
            return None
        spool_id, recipient, recipients = int(fields[1], 16), int(number), int(count)
        if not (0 <= spool_id < _MOST_ID and 0 < recipient < _MOST_COUNT and 0 < recipients < _MOST_COUNT):
            return None
        if not 0 <= attempts < _MOST_COUNT:
            return None
        eightbit, stuffed_dots = _USUAL_FLAGS.get(fields[7]) or _parse_flags(fields[7])
        if not 0 <= stuffed_dots <= size:
            return None
        message_words = recipient_words = None
        if len(fields) > _FIELDS:
            words = split_words(fields[_FIELDS])
            if words is None:
                return None
            message_words, recipient_words = words
        reply = None
        if fields[11] != b"-":
            reply = Reply(int(fields[11]), unescape(fields[12]), unescape(fields[13]))
        message = Message(
            SpoolId(spool_id),
            unescape(fields[9]),
            unescape(fields[8]),
            eightbit,
            received_ms / 1000,
            size - stuffed_dots,
            recipients,
            [],
            stuffed_dots,
            message_words,
        )
        host = unescape(fields[14]) if reply is not None else b"-"
        return message, Entry(recipient, unescape(fields[10]), area, due_ms / 1000, attempts, reply, host, recipient_words)
    except ValueError:
        return None
