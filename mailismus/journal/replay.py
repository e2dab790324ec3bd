"""Replay: which batches of the segments found count, in order, and what does not check.

What the records mean is the queue's affair. The rules (explored state by state in the queue's model):

1. A batch counts only with its segment's nonce, its CRC, and a sequence number one above the last one's.
2. A segment's header counts only with a batch behind it; its `last_good` denies what lies behind it in *all* earlier ones.
3. The last batch found may be whole and yet not durable (after `kill -9` it may be in the page cache alone): whoever
   starts says it again in a new segment before acting on anything.
4. A batch that does not check but has valid ones behind it is damage: it is reported, the others go on. So is a gap in
   the sequence that no checkpoint explains; a header that does not check is then what is missing, and otherwise a start
   of a segment that came to nothing.
5. Where a header does not check, the first batch tells the nonce. What an earlier use of the file left there lies before
   the horizon. A guessed header denies nothing: it may be that of a segment that was never begun.

Memory: one segment at a time. Everything here blocks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import zip_longest

import attrs

from mailismus.disk.interface import IDisk, IFile, close_read
from mailismus.errors import newer_format
from mailismus.journal.batch import (
    BLOCK,
    DENIES_NOTHING,
    NEWEST_FORMAT,
    Batch,
    SegmentHeader,
    decode_batch,
    decode_header,
    guess_header,
    header_format,
    highest_sequence,
    is_unused,
    looks_torn,
)
from mailismus.journal.segment import Segment

SUFFIX = ".mqj"

FIRST_LOOK = 64 * BLOCK
"""Bytes of a segment that mostly hold its first batch."""

_MOST_DIGITS = 15
"""Of a number in a name: what is longer is none of ours."""


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
    """It was begun once, and its header does not check: torn then, or damaged since, or gone altogether."""
    is_guessed: bool = False
    """The header is what its first batch tells, because its own does not check."""
    is_torn: bool = False
    """Behind its last batch another one was begun: torn, and never answered; or damaged since."""
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

    @property
    def lost_headers(self) -> int:
        """How many do not check: each may have told of an epoch."""
        return sum(segment.is_guessed for segment in self.used) + sum(segment.is_unreadable for segment in self.others)

    @property
    def is_doubtful(self) -> bool:
        """Something may be missing, be it only what a crash tore off: a checkpoint may have been said that is not found."""
        return bool(self.damages or self.lost_headers or self.torn)

    @property
    def torn(self) -> list[FoundSegment]:
        """Segments whose last batch is not whole."""
        return [segment for segment in (*self.used, *self.others) if segment.is_torn]

    def close(self) -> None:
        """Close every segment."""
        for segment in (*self.used, *self.others):
            close_read(segment.file)

    @property
    def highest_number(self) -> int:
        """Of any header that can be read, and of any name: no segment is ever renamed over another."""
        segments = (*self.used, *self.others)
        numbers = [s.header.number for s in segments if s.header is not None]
        return max([*numbers, *(named_number(s.path) for s in segments)], default=0)

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
    found: list[FoundSegment] = []
    try:
        for name in sorted(disk.list_directory(directory)):
            if name.endswith(SUFFIX):
                found.append(look_at(os.path.join(directory, name), disk))
        return arrange(found)
    except BaseException:
        for segment in found:
            close_read(segment.file)
        raise


def arrange(found: Iterable[FoundSegment]) -> Journal:
    """These segments as one journal: those that count in order, with what later headers deny of them. Raises OSError."""
    journal = Journal([], [])
    used, others = journal.used, journal.others
    for segment in found:
        (used if segment.counts else others).append(segment)
    _guess_headers(journal)
    used.sort(key=_order)
    limit = DENIES_NOTHING
    for segment in reversed(used):
        segment.limit = limit
        assert segment.header is not None
        limit = min(limit, segment.header.last_good)
    return journal


def _guess_headers(journal: Journal) -> None:
    """Segments whose header does not check count by what their first batch tells, where that one does."""
    taken = {segment.header.number for segment in journal.used if segment.header is not None}
    for segment in [segment for segment in journal.others if segment.is_unreadable]:
        number = named_number(segment.path)
        while number in taken:
            number += 1
        segment.header = guess_header(segment.file.read_at(0, segment.size_bytes), number)
        if segment.header is not None:
            taken.add(number)
            segment.counts = segment.is_guessed = True
            journal.others.remove(segment)
            journal.used.append(segment)


def named_number(path: str) -> int:
    """The number that the name of a segment tells; 0: none."""
    stem = os.path.basename(path).removesuffix(SUFFIX)
    return int(stem) if stem.isascii() and stem.isdigit() and len(stem) <= _MOST_DIGITS else 0


def _order(segment: FoundSegment) -> tuple[int, bool, int]:
    """A later segment has a higher number and a first sequence that is no lower; of a guessed header the number is none."""
    assert segment.header is not None
    return segment.header.first_sequence, not segment.is_guessed, segment.header.number


def look_at(path: str, disk: IDisk) -> FoundSegment:
    """Open one file of the journal; all of it is read only where its first batch is long or not there. Raises OSError."""
    file = disk.open(path)
    try:
        return look_at_file(path, file)
    except BaseException:
        close_read(file)
        raise


def look_at_file(path: str, file: IFile) -> FoundSegment:
    """An open file of the journal. Raises OSError, or `NewerFormat` for one that a newer program wrote."""
    data = file.read_at(0, FIRST_LOOK)
    refuse_newer_segment(path, data)
    header = decode_header(data[:BLOCK])
    size = file.size()
    counts = header is not None and _begins(data, header)
    if header is not None and not counts:
        data = file.read_at(0, size)
        counts = next(read_batches(data, header), None) is not None
    if header is None and is_unused(data) and named_number(path):
        data = file.read_at(0, size)  # it was begun, or was to be: what begins with zeros may have lost its beginning
    found = FoundSegment(path, file, size, header, counts, is_unreadable=header is None and not is_unused(data))
    if header is not None:
        found.is_torn = not counts and looks_torn(data, BLOCK, header.nonce)
    return found


def refuse_newer_segment(path: str, data: bytes) -> None:
    """Raise `NewerFormat` where the segment that begins with `data` was written by a newer program. Free segments are
    refused too: where a newer format says that they are free is not known here."""
    found = header_format(data[:BLOCK])
    if found > NEWEST_FORMAT:
        raise newer_format(path, found, NEWEST_FORMAT)


def _begins(data: bytes, header: SegmentHeader) -> bool:
    """Whether the first batch is here, whole."""
    batch = decode_batch(data, BLOCK, header.nonce)
    return batch is not None and batch.sequence == header.first_sequence


def replay(journal: Journal) -> Iterator[tuple[FoundSegment, Batch]]:
    """The batches that count, in order, those before the horizon of `journal` left out.

    A checkpoint among them may say a later horizon: who replays drops what was last said before that one, and asks
    `drop_explained` about the damages.
    """
    expected = journal.horizon + 1
    for segment, following in zip_longest(journal.used, journal.used[1:]):
        assert segment.header is not None
        behind = _sure_beginning(following)
        if behind is not None and behind <= expected:
            segment.last_sequence = behind - 1  # all that counts here is lower: nobody needs it, nothing is read
            continue
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
        else:
            segment.is_torn = looks_torn(data, end, segment.header.nonce)
        _note_header(journal, segment)
    last = max([segment.last_sequence for segment in journal.used], default=0)
    known = {damage.path for damage in journal.damages}
    for other in journal.others:
        if (
            other.is_unreadable
            and other.path not in known
            and highest_sequence(other.file.read_at(0, other.size_bytes)) > last
        ):
            journal.damages.append(Damage(other.path, 0, other.size_bytes, DENIES_NOTHING))


def _sure_beginning(segment: FoundSegment | None) -> int | None:
    """The first sequence of a segment whose header checks."""
    return (
        segment.header.first_sequence
        if segment is not None and segment.header is not None and not segment.is_guessed
        else None
    )


def _note_header(journal: Journal, segment: FoundSegment) -> None:
    """A header that was guessed is damage if it was ever durable: the second batch is written when the first one is."""
    assert segment.header is not None
    if segment.is_guessed and segment.last_sequence > segment.header.first_sequence:
        journal.damages.append(Damage(segment.path, 0, BLOCK, segment.last_sequence + 1))


def replay_behind(journal: Journal, horizon: int) -> Iterator[tuple[FoundSegment, Batch]]:
    """Once more the batches that count, those up to `horizon` left out; of segments that hold none behind it nothing is
    read."""
    last = max(horizon, journal.horizon)
    for segment in journal.used:
        if segment.last_sequence <= last:
            continue
        assert segment.header is not None
        for batch in read_batches(segment.file.read_at(0, segment.end), segment.header):
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
