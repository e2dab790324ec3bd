"""Replay: which batches of the segments found count, in order, and what does not check.

What the records mean is the queue's affair. The rules (explored state by state in the queue's model):

1. A batch counts only with its segment's nonce, its CRC, and a sequence number one above the last one's.
2. A segment's header counts only with a batch behind it; its `last_good` denies what lies behind it in *all* earlier ones.
3. The last batch found may be whole and yet not durable (after `kill -9` it may be in the page cache alone): whoever
   starts says it again in a new segment before acting on anything.
4. A batch that does not check but has valid ones behind it is damage: it is reported, the others go on. So is a gap in
   the sequence that no checkpoint explains; a header that does not check is then what is missing, and otherwise a start
   of a segment that came to nothing.

Memory: one segment at a time. Everything here blocks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import attrs

from mailismus.disk.interface import IDisk, IFile, close_read
from mailismus.journal.batch import BLOCK, Batch, SegmentHeader, decode_batch, decode_header, looks_like_header
from mailismus.journal.segment import Segment

SUFFIX = ".mqj"


@attrs.frozen
class Damage:
    """Bytes of a segment that do not check. Size 0: nothing is there to set aside, batches are missing.

    What is missing are batches numbered below `before`: with a horizon at or behind the last of them nothing is.
    """

    path: str
    offset: int
    size_bytes: int
    before: int


@attrs.define
class FoundSegment:
    """A file of the journal's directory."""

    path: str
    file: IFile
    size_bytes: int
    header: SegmentHeader | None
    counts: bool
    """It has a header and a batch that checks."""
    is_unreadable: bool
    """It begins as a header does, but does not check: torn when it was begun, or damaged since."""
    limit: int = 0
    """Batches behind this sequence number are denied by a later header."""
    last_sequence: int = 0
    """Of the last batch that counts, once it was replayed."""
    end: int = 0
    """Where that batch ends."""

    def as_segment(self) -> Segment:
        """For a writer that does not write to it before it begins it anew."""
        segment = Segment(self.path, self.file, self.size_bytes)
        segment.header = self.header if self.counts else None
        segment.end = self.end
        segment.last_sequence = self.last_sequence
        return segment


@attrs.define
class Journal:
    """What a journal's directory holds. `damages` fills as it is replayed."""

    used: list[FoundSegment]
    """Segments that count, in the order of their numbers."""
    others: list[FoundSegment]
    damages: list[Damage] = attrs.field(factory=list)

    def close(self) -> None:
        """Close every segment."""
        for segment in (*self.used, *self.others):
            close_read(segment.file)

    @property
    def highest_number(self) -> int:
        """Of any header that can be read."""
        return max((s.header.number for s in (*self.used, *self.others) if s.header is not None), default=0)

    @property
    def epoch(self) -> int:
        """The highest in any header that can be read, counting or not: no spool id is ever used twice."""
        return max((s.header.epoch for s in (*self.used, *self.others) if s.header is not None), default=0)

    @property
    def horizon(self) -> int:
        """The newest horizon that a header tells of; it was durable before that header was written."""
        return max((s.header.horizon for s in self.used if s.header is not None), default=0)


def survey(disk: IDisk, directory: str) -> Journal:
    """Open every segment and read the headers. Files of other names are not ours and are left alone."""
    journal = Journal([], [])
    used, others = journal.used, journal.others
    try:
        for name in sorted(disk.list_directory(directory)):
            if name.endswith(SUFFIX):
                found = look_at(os.path.join(directory, name), disk)
                (used if found.counts else others).append(found)
    except BaseException:
        journal.close()
        raise
    used.sort(key=_number)
    limit = 1 << 64
    for segment in reversed(used):
        segment.limit = limit
        assert segment.header is not None
        limit = min(limit, segment.header.last_good)
    return journal


def _number(segment: FoundSegment) -> int:
    return segment.header.number if segment.header is not None else 0


def look_at(path: str, disk: IDisk) -> FoundSegment:
    """Open one file of the journal. Raises OSError."""
    file = disk.open(path)
    try:
        block = file.read_at(0, BLOCK)
        header = decode_header(block)
        size = file.size()
        counts = header is not None and next(read_batches(file.read_at(0, size), header), None) is not None
    except BaseException:
        close_read(file)
        raise
    return FoundSegment(path, file, size, header, counts, header is None and looks_like_header(block))


def replay(journal: Journal) -> Iterator[tuple[FoundSegment, Batch]]:
    """The batches that count, in order, those before the horizon of `journal` left out.

    A checkpoint among them may say a later horizon: who replays drops what was last said before that one, and asks
    `drop_explained` about the damages.
    """
    expected = journal.horizon + 1
    for segment in journal.used:
        assert segment.header is not None
        data = segment.file.read_at(0, segment.size_bytes)
        segment.last_sequence = segment.header.first_sequence - 1
        end = BLOCK
        for batch in read_batches(data, segment.header):
            if batch.sequence > segment.limit:
                break
            if batch.offset > end:
                journal.damages.append(Damage(segment.path, end, batch.offset - end, batch.sequence))
            elif batch.sequence > expected:
                journal.damages.append(Damage(segment.path, batch.offset, 0, batch.sequence))
                unreadable = [other for other in journal.others if other.is_unreadable]
                journal.damages += [Damage(other.path, 0, other.size_bytes, batch.sequence) for other in unreadable]
            end = segment.end = batch.end
            segment.last_sequence = batch.sequence
            if batch.sequence >= expected:
                expected = batch.sequence + 1
                yield segment, batch


def replay_behind(journal: Journal, horizon: int) -> Iterator[tuple[FoundSegment, Batch]]:
    """Once more the batches that count, those up to `horizon` left out; of segments that hold none behind it nothing is
    read."""
    last = max(horizon, journal.horizon)
    for segment in journal.used:
        if segment.last_sequence <= last:
            continue
        assert segment.header is not None
        for batch in read_batches(segment.file.read_at(0, segment.end), segment.header):
            if batch.sequence > segment.limit:
                break
            if batch.sequence > last:
                last = batch.sequence
                yield segment, batch


def drop_explained(journal: Journal, horizon: int) -> None:
    """Damages to what nobody needs any more are none: segments behind the horizon are used again in any order."""
    journal.damages = [damage for damage in journal.damages if damage.before - 1 > horizon]


def read_batches(data: bytes, header: SegmentHeader) -> Iterator[Batch]:
    """Batches in a segment's bytes that check, in order. Where one does not, the next valid one behind it."""
    offset, expected = BLOCK, header.first_sequence
    while True:
        batch = decode_batch(data, offset, header.nonce)
        if batch is None or batch.sequence != expected:
            batch = next(_batches_behind(data, offset, header.nonce, expected), None)
            if batch is None:
                return
        yield batch
        offset, expected = batch.end, batch.sequence + 1


def _batches_behind(data: bytes, offset: int, nonce: bytes, expected: int) -> Iterator[Batch]:
    for start in range(offset + BLOCK, len(data), BLOCK):
        batch = decode_batch(data, start, nonce)
        if batch is not None and batch.sequence >= expected:
            yield batch
