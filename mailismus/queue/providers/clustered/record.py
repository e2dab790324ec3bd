"""Records: what a journal batch says.

    message     M AREA SPID   recipient lines, then the content: a message begins, or is said again
    file        F AREA SPID   recipient lines of a message whose content is a message file: it begins, or is said again
    lines       L AREA SPID   recipient lines in place of earlier ones: a retry, a bounce
    settled     S             queue ids of entries that are over, one a line: `SPID-N PLACE`
    checkpoint  C             `horizon N epoch N`

A record is a head (kind, area, spool id, bytes of text, bytes of content), its text, its content. Later records of an
entry win; lines and settled ids of a message that has not begun are nothing. Text is text: `grep -a` reads it.

Source: `docs/formats/journal`.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator, Sequence

import attrs

from mailismus.errors import Corrupt
from mailismus.mail.ids import QueueId, SpoolId, parse_queue_id
from mailismus.queue.interface import Area

HEAD = struct.Struct("<cc2xQII")

_AREA_LETTER = {Area.INCOMING: b"i", Area.DEFERRED: b"d", Area.BOUNCES: b"b"}
_AREA = {letter: area for area, letter in _AREA_LETTER.items()}


class RecordKind(enum.Enum):
    """The first byte of a record."""

    MESSAGE = b"M"
    FILE = b"F"
    LINES = b"L"
    SETTLED = b"S"
    CHECKPOINT = b"C"


@attrs.frozen
class Record:
    """One record as found. `content_offset` and `content_size`: where its content lies in the batch's records."""

    kind: RecordKind
    area: Area | None
    spool_id: SpoolId
    text: bytes
    content_offset: int
    content_size: int


def message_head(area: Area, spool_id: SpoolId, lines: bytes, content_size: int) -> bytes:
    """All of a message record but its content, which goes behind it."""
    return HEAD.pack(b"M", _AREA_LETTER[area], spool_id, len(lines), content_size) + lines


def file_record(area: Area, spool_id: SpoolId, lines: bytes) -> bytes:
    """A file record."""
    return HEAD.pack(b"F", _AREA_LETTER[area], spool_id, len(lines), 0) + lines


def lines_record(area: Area, spool_id: SpoolId, lines: bytes) -> bytes:
    """A lines record."""
    return HEAD.pack(b"L", _AREA_LETTER[area], spool_id, len(lines), 0) + lines


def settled_record(queue_ids: Sequence[QueueId]) -> bytes:
    """A settled record. The place `-`: the line is young, it rests nowhere."""
    text = b"".join([b"%016X-%d -\n" % queue_id for queue_id in queue_ids])
    return HEAD.pack(b"S", b"-", 0, len(text), 0) + text


def checkpoint_record(horizon: int, epoch: int) -> bytes:
    """A checkpoint record: batches up to the horizon are not needed any more; epochs up to this one may be used."""
    text = b"horizon %d epoch %d\n" % (horizon, epoch)
    return HEAD.pack(b"C", b"-", 0, len(text), 0) + text


def read_records(records: bytes) -> Iterator[Record]:
    """The records of a batch, in order. Raises `Corrupt` (path empty) where their lengths do not fit, which a batch
    that checks can only say if whoever wrote it was wrong."""
    offset, end = 0, len(records)
    while offset < end:
        if offset + HEAD.size > end:
            raise Corrupt("", offset, "a record's head is cut short")
        letter, area_letter, spool_id, text_size, content_size = HEAD.unpack_from(records, offset)
        text_start = offset + HEAD.size
        content_offset = text_start + text_size
        if content_offset + content_size > end:
            raise Corrupt("", offset, "a record is longer than its batch")
        try:
            kind = RecordKind(letter)
        except ValueError:
            raise Corrupt("", offset, f"unknown kind of record {letter!r}") from None
        text = records[text_start:content_offset]
        yield Record(kind, _AREA.get(area_letter), SpoolId(spool_id), text, content_offset, content_size)
        offset = content_offset + content_size


def parse_settled(text: bytes) -> list[QueueId]:
    """The queue ids of a settled record's text; lines that are none are left out."""
    found = []
    for line in text.splitlines():
        queue_id = parse_queue_id(line.partition(b" ")[0].decode("ascii", "replace"))
        if queue_id is not None:
            found.append(queue_id)
    return found


def parse_checkpoint(text: bytes) -> tuple[int, int]:
    """Horizon and epoch of a checkpoint record's text; zeros for what is no such text."""
    words = text.split()
    if len(words) == 4 and words[1].isdigit() and words[3].isdigit():
        return int(words[1]), int(words[3])
    return 0, 0
