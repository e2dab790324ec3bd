"""Records: the contents of a journal batch.

    message     M AREA SPID   recipient lines, then the content: begins a message, or rewrites it
    file        F AREA SPID   recipient lines of a message whose content is a message file: begins it, or rewrites it
    lines       L AREA SPID   recipient lines in place of earlier ones: a retry, a bounce
    settled     S             queue ids of settled entries, one a line: `SPID-N PLACE`
    places      P             places of entries that were settled before the checkpoint that moved them: `SPID-N PLACE`
    checkpoint  C             `horizon N epoch N checkpoint K`, then the committed length of each open cluster: `PLACE`
    epoch       E             `epoch N`: may be used for spool ids

A record is a head (kind, area, spool id, bytes of text, bytes of content), its text, its content. Later records of an entry
win; lines and settled ids of an unknown message are ignored. Text is readable: `grep -a` finds it.

Source: `docs/formats/journal`.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Iterator

import attrs

from mailismus.errors import Corrupt
from mailismus.mail.ids import QueueId, SpoolId, parse_queue_id, spool_name
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place, format_place, parse_place

HEAD = struct.Struct("<cc2xQII")

FORMAT_WITH_WORDS = 2
"""The lowest format of a segment or cluster whose lines may have words (`mail.words`)."""

_AREA_LETTER = {Area.INCOMING: b"i", Area.DEFERRED: b"d", Area.BOUNCES: b"b", Area.HELD: b"h", Area.DELETED: b"x"}
_AREA = {letter: area for area, letter in _AREA_LETTER.items()}


class RecordKind(enum.Enum):
    """The first byte of a record."""

    MESSAGE = b"M"
    FILE = b"F"
    LINES = b"L"
    SETTLED = b"S"
    PLACES = b"P"
    CHECKPOINT = b"C"
    EPOCH = b"E"


@attrs.frozen
class Record:
    """One record. `content_offset` and `content_size`: where its content lies in the batch's records."""

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


def settled_record(entries: Iterable[tuple[QueueId, Place | None]]) -> bytes:
    """A settled record. Place: that of the line in its cluster; None: the entry was in the memtable when this was
    written."""
    return settled_text_record(settled_text(entries))


def settled_in_memtable(spool_id: SpoolId, numbers: Iterable[int]) -> bytes:
    """The text of a settled record for entries of one message that are in the memtable when it is written."""
    name = spool_name(spool_id)
    return b"".join([b"%b-%d -\n" % (name, number) for number in numbers])


def settled_text_record(text: bytes) -> bytes:
    """A settled record with this text."""
    return HEAD.pack(b"S", b"-", 0, len(text), 0) + text


def settled_text(entries: Iterable[tuple[QueueId, Place | None]]) -> bytes:
    """The text of a settled record."""
    return b"".join(
        [
            b"%016X-%d -\n" % queue_id if place is None else b"%016X-%d %b\n" % (*queue_id, format_place(place))
            for queue_id, place in entries
        ]
    )


def places_record(entries: Iterable[tuple[QueueId, Place]]) -> bytes:
    """A places record."""
    text = settled_text(entries)
    return HEAD.pack(b"P", b"-", 0, len(text), 0) + text


@attrs.frozen
class Checkpoint:
    """The contents of a checkpoint record."""

    horizon: int
    """Sequence of the last batch that is not needed any more."""
    epoch: int
    number: int
    """Of the checkpoint. Clusters of a higher number do not count."""
    lengths: dict[ClusterId, int]
    """Committed lengths of the open clusters."""


def checkpoint_record(checkpoint: Checkpoint) -> bytes:
    """A checkpoint record."""
    lines = [b"horizon %d epoch %d checkpoint %d\n" % (checkpoint.horizon, checkpoint.epoch, checkpoint.number)]
    for cluster_id, length in checkpoint.lengths.items():
        lines.append(format_place(Place(cluster_id, length)) + b"\n")
    text = b"".join(lines)
    return HEAD.pack(b"C", b"-", 0, len(text), 0) + text


def epoch_record(epoch: int) -> bytes:
    """An epoch record."""
    text = b"epoch %d\n" % epoch
    return HEAD.pack(b"E", b"-", 0, len(text), 0) + text


def read_records(records: bytes, letters: bytes = b"") -> Iterator[Record]:
    """The records of a batch, in order; `letters`: of these kinds alone. Raises `Corrupt` (path empty) where their lengths
    do not fit: in a batch that checks, that is a bug of the writer."""
    offset, end = 0, len(records)
    while offset < end:
        if offset + HEAD.size > end:
            raise Corrupt("", offset, "a record's head is cut short")
        letter, area_letter, spool_id, text_size, content_size = HEAD.unpack_from(records, offset)
        text_start = offset + HEAD.size
        content_offset = text_start + text_size
        if content_offset + content_size > end:
            raise Corrupt("", offset, "a record is longer than its batch")
        if letters and letter not in letters:
            offset = content_offset + content_size
            continue
        try:
            kind = RecordKind(letter)
        except ValueError:
            raise Corrupt("", offset, f"unknown kind of record {letter!r}") from None
        text = records[text_start:content_offset]
        yield Record(kind, _AREA.get(area_letter), SpoolId(spool_id), text, content_offset, content_size)
        offset = content_offset + content_size


def parse_placed(text: bytes) -> list[tuple[QueueId, Place | None]]:
    """Queue ids and places of a settled or places record. Lines that do not parse, and words behind a place, are ignored."""
    found = []
    for line in text.splitlines():
        id_text, _, place_text = line.partition(b" ")
        queue_id = parse_queue_id(id_text.decode("ascii", "replace"))
        if queue_id is not None:
            found.append((queue_id, parse_place(place_text.partition(b" ")[0])))
    return found


def parse_checkpoint(text: bytes) -> Checkpoint | None:
    """The contents of a checkpoint record's text. Words at the end of its first line are ignored. None: it is no such
    text."""
    first, *rest = text.splitlines() or [b""]
    words = first.split()
    if len(words) < 6 or not all(word.isdigit() for word in words[1:6:2]) or not all(b"=" in word for word in words[6:]):
        return None
    places = [parse_place(line) for line in rest]
    lengths = {place.cluster: place.offset for place in places if place is not None}
    return Checkpoint(int(words[1]), int(words[3]), int(words[5]), lengths)


def parse_epoch(text: bytes) -> int:
    """The epoch of an epoch record's text; 0: it is no such text."""
    words = text.split()
    return int(words[1]) if len(words) == 2 and words[1].isdigit() else 0
