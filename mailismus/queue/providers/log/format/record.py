"""Records: the contents of a batch of the log.

    message      M AREA SPID   recipient lines, then the content: an envelope with its content
    file         F AREA SPID   recipient lines of an envelope whose content is a message file
    replacement  R AREA SPID   `content SEGMENT OFFSET CRC`, then recipient lines: an envelope whose content is in the log
    lines        L AREA SPID   recipient lines of another area, of the envelope before
    moved        V             place of an envelope that is garbage from here on: the next one in the batch stands for it
    start        S             places of envelopes: work on them is going on
    delivery     D SPID        place, then numbers of recipients: these have left that envelope
    finish       X             places of envelopes that no entry is left of
    epoch        E             `epoch N`: may be used for spool ids

An envelope is named by its place: the sequence number of its batch, and the offset of its record from the batch's first one.
A batch that is written again keeps its number, so places hold for ever. Text is readable: `grep -a` finds it.

Source: `docs/formats/log`.
"""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import attrs

from mailismus.errors import Corrupt
from mailismus.journal.frame import FRAME, MARK_AT
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area

GARBAGE = b"x"
"""The mark of an envelope that nobody needs to read."""

WORKING = b"w"
"""The mark of an envelope that work is going on: the working suffix tells how far. It is read where that is damaged."""

MOST_DETAIL = 255

_PLACE = struct.Struct("<QI")
_FINISH_ONE = struct.Struct("<ccBBQIIQI")
_AREA_LETTER = {Area.INCOMING: b"i", Area.DEFERRED: b"d", Area.BOUNCES: b"b", Area.HELD: b"h", Area.DELETED: b"x"}
_AREA = {letter: area for area, letter in _AREA_LETTER.items()}
_MOST_OFFSET = 1 << 40
_MOST_SEGMENT = 1 << 50


class LogRecordKind(enum.Enum):
    """The first byte of a record."""

    MESSAGE = b"M"
    FILE = b"F"
    REPLACEMENT = b"R"
    LINES = b"L"
    MOVED = b"V"
    START = b"S"
    DELIVERY = b"D"
    FINISH = b"X"
    EPOCH = b"E"

    __hash__ = object.__hash__


ENVELOPES = frozenset((LogRecordKind.MESSAGE, LogRecordKind.FILE, LogRecordKind.REPLACEMENT))
"""Kinds that begin an envelope."""

_KINDS = {kind.value: kind for kind in LogRecordKind}


RecordHead = tuple[bytes, bytes, int, int, int, int, int]
"""Kind, area, mark, detail, id, bytes of text, bytes of content."""


class LogPlace(NamedTuple):
    """Name of an envelope: sequence number of its batch, offset of its record from the batch's first one."""

    sequence: int
    offset: int


class ContentPlace(NamedTuple):
    """Where a content lies: number of the segment, offset in its file, CRC of the content."""

    segment: int
    offset: int
    checksum: int


@attrs.frozen
class LogRecord:
    """One record. `offset`: from the first record of the batch; `content_offset` too."""

    kind: LogRecordKind
    area: Area | None
    mark: bytes
    detail: int
    spool_id: SpoolId
    text: bytes
    offset: int
    content_offset: int
    content_size: int

    @property
    def is_marked(self) -> bool:
        """Whether it is marked as garbage."""
        return self.mark == GARBAGE


def interval_of(delay_s: float) -> int:
    """Return the number of a retry interval: quarters of an octave, so that jitter hardly leaves it."""
    return min(MOST_DETAIL, int(4 * math.log2(delay_s))) if delay_s > 1 else 0


def shortest_s(interval: int) -> float:
    """Return the shortest delay of a retry interval."""
    return 2.0 ** (interval / 4) if interval else 0.0


def message_head(area: Area, spool_id: SpoolId, lines: bytes, content_size: int) -> bytes:
    """All of an envelope with content but that content, which goes behind it."""
    return FRAME.pack(b"M", _AREA_LETTER[area], 0, 0, spool_id, len(lines), content_size) + lines


def file_record(area: Area, spool_id: SpoolId, lines: bytes, interval: int = 0) -> bytes:
    """An envelope whose content is a message file."""
    return FRAME.pack(b"F", _AREA_LETTER[area], 0, interval, spool_id, len(lines), 0) + lines


def replacement_record(area: Area, spool_id: SpoolId, lines: bytes, content: ContentPlace, interval: int) -> bytes:
    """An envelope whose content is in the log already."""
    text = b"content %d %d %08x\n%b" % (*content, lines)
    return FRAME.pack(b"R", _AREA_LETTER[area], 0, interval, spool_id, len(text), 0) + text


def lines_record(area: Area, spool_id: SpoolId, lines: bytes) -> bytes:
    """Further entries of the envelope before."""
    return FRAME.pack(b"L", _AREA_LETTER[area], 0, 0, spool_id, len(lines), 0) + lines


def moved_record(place: LogPlace) -> bytes:
    """A moved record: the envelope of that place is written again behind it."""
    return _places_record(b"V", [place])


def start_record(places: Iterable[LogPlace]) -> bytes:
    """A start record."""
    return _places_record(b"S", places)


def finish_record(places: Iterable[LogPlace]) -> bytes:
    """A finish record."""
    return _places_record(b"X", places)


def finish_one(sequence: int, offset: int) -> bytes:
    """A finish record of one envelope (hot path)."""
    return _FINISH_ONE.pack(b"X", b"-", 0, 0, 0, _PLACE.size, 0, sequence, offset)


def _places_record(letter: bytes, places: Iterable[LogPlace]) -> bytes:
    text = b"".join([_PLACE.pack(*place) for place in places])
    return FRAME.pack(letter, b"-", 0, 0, 0, len(text), 0) + text


def delivery_record(spool_id: SpoolId, place: LogPlace, numbers: Sequence[int]) -> bytes:
    """A delivery record."""
    text = _PLACE.pack(*place) + struct.pack(f"<{len(numbers)}I", *numbers)
    return FRAME.pack(b"D", b"-", 0, 0, spool_id, len(text), 0) + text


def epoch_record(epoch: int) -> bytes:
    """An epoch record."""
    text = b"epoch %d\n" % epoch
    return FRAME.pack(b"E", b"-", 0, 0, 0, len(text), 0) + text


def record_of(head: RecordHead, text: bytes, offset: int) -> LogRecord | None:
    """The record of this head (`frame.FRAME`) and text; None: its kind is unknown. `offset`: from the first record of its
    batch."""
    letter, area_letter, mark, detail, spool_id, text_size, content_size = head
    kind = _KINDS.get(letter)
    if kind is None:
        return None
    at = offset + FRAME.size + text_size
    area = _AREA.get(area_letter)
    return LogRecord(kind, area, bytes((mark,)), detail, SpoolId(spool_id), text, offset, at, content_size)


def read_records(records: bytes, letters: bytes = b"") -> Iterator[LogRecord]:
    """The records of a batch, in order; `letters`: of these kinds alone. Raises `Corrupt` (path empty) where their lengths
    do not fit: in a batch that checks, that is a bug of the writer."""
    offset, end = 0, len(records)
    while offset < end:
        if offset + FRAME.size > end:
            raise Corrupt("", offset, "a record's head is cut short")
        head: RecordHead = FRAME.unpack_from(records, offset)
        letter, content_size = head[0], head[6]
        content_offset = offset + FRAME.size + head[5]
        if content_offset + content_size > end:
            raise Corrupt("", offset, "a record is longer than its batch")
        if not letters or letter in letters:
            record = record_of(head, records[offset + FRAME.size : content_offset], offset)
            if record is None:
                raise Corrupt("", offset, f"unknown kind of record {letter!r}")
            yield record
        offset = content_offset + content_size


def mark_offset(record_offset: int) -> int:
    """Return where the mark of a record lies, whose offset in the file is given."""
    return record_offset + MARK_AT


def parse_places(text: bytes) -> list[LogPlace] | None:
    """The places of a start or finish record. None: it is none."""
    if len(text) % _PLACE.size:
        return None
    return [LogPlace(*pair) for pair in _PLACE.iter_unpack(text)]


def parse_delivery(text: bytes) -> tuple[LogPlace, tuple[int, ...]] | None:
    """Place and numbers of a delivery record. None: it is none."""
    if len(text) < _PLACE.size or (len(text) - _PLACE.size) % 4:
        return None
    numbers = struct.unpack_from(f"<{(len(text) - _PLACE.size) // 4}I", text, _PLACE.size)
    return LogPlace(*_PLACE.unpack_from(text)), numbers


def split_replacement(text: bytes) -> tuple[ContentPlace, bytes] | None:
    """Place of the content and recipient lines of a replacement. None: it is none."""
    first, _, lines = text.partition(b"\n")
    words = first.split(b" ")
    if len(words) != 4 or words[0] != b"content" or not (words[1].isdigit() and words[2].isdigit()) or len(words[3]) != 8:
        return None
    try:
        place = ContentPlace(int(words[1]), int(words[2]), int(words[3], 16))
    except ValueError:
        return None
    return (place, lines) if place.segment < _MOST_SEGMENT and place.offset < _MOST_OFFSET else None


def parse_epoch(text: bytes) -> int:
    """The epoch of an epoch record's text; 0: it is no such text."""
    words = text.split()
    return int(words[1]) if len(words) == 2 and words[1].isdigit() and len(words[1]) <= 10 else 0
