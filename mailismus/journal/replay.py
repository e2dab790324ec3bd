"""Replay: the batches that count, in order, and the bytes that do not check.

The queue interprets the records. The rules, which the queue's model explores state by state:

1. A batch counts only with its segment's nonce, its CRC, and a sequence number one above the last one's.
2. A segment's header counts only with a batch behind it; it denies batches above its `last_good` in *all* earlier segments.
3. The last batch found may be whole and yet not durable: after `kill -9` it may be in the page cache alone. A start rewrites
   it in a new segment before it acts on anything.
4. A batch that does not check is damage if valid ones follow it: it is reported, and the others are replayed. A gap in the
   sequence that no checkpoint explains is damage too. A segment whose header does not check is taken for the missing part;
   without a gap it is one whose first batch was never completed.
5. Where a header does not check, the nonce comes from the first batch. Batches of an earlier use of the file lie before the
   horizon. A derived header denies nothing: it may be that of a segment that was never begun.

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
    BATCH_HEAD_SIZE,
    BLOCK,
    DENIES_NOTHING,
    NEWEST_FORMAT,
    Batch,
    SegmentHeader,
    claimed_size,
    decode_batch,
    decode_header,
    guess_header,
    header_format,
    highest_sequence,
    is_unused,
    looks_torn,
    padded_size,
)
from mailismus.journal.segment import READY_NAME, Segment, free_name

SUFFIX = ".mqj"

FIRST_LOOK = 64 * BLOCK
"""Bytes of a segment that hold its first batch in most cases."""

_MOST_DIGITS = 15
"""Digits of a number in a name: a longer one is no segment's."""


@attrs.frozen
class Damage:
    """Bytes of a segment that do not check. Size 0: there are no bytes to quarantine, batches are missing.

    The missing batches are numbered below `before`; none is needed if the horizon is at or above the last of them.
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
    """It was begun once, and its header does not check: torn, damaged, or overwritten with zeros."""
    is_guessed: bool = False
    """The header is derived from its first batch, because its own does not check."""
    is_torn: bool = False
    """Behind its last batch another one was begun, which is torn (and was never acknowledged) or damaged."""
    was_free: bool = False
    """It was free, and was being begun anew at a crash: it holds remains of an earlier use, and bytes that never counted."""
    limit: int = 0
    """Batches behind this sequence number are denied by a later header."""
    last_sequence: int = 0
    """Of the last batch that counts, once it was replayed."""
    end: int = 0
    """Where that batch ends."""

    def limit_to(self, sequence: int) -> None:
        """Note that a later header denies the batches behind this sequence number."""
        self.limit = sequence

    def set_free(self) -> None:
        """Note that it was free, and does not count."""
        self.was_free, self.counts = True, False
        if self.is_guessed:
            self.header, self.is_guessed = None, False

    def kept_bytes(self) -> int:
        """Return how many bytes `cut` keeps, if there are more; 0: all. Raises OSError."""
        end = self.end
        if end and self.is_torn:
            end += padded_size(claimed_size(self.file.read_at(end, BATCH_HEAD_SIZE), 0))
        return end

    def cut(self) -> bool:
        """Cut off what lies behind the last batch; return whether that was anything. A batch that was begun there stays: it
        may be damaged. Where the end is not known, all stays. Raises OSError."""
        end = self.kept_bytes()
        if not 0 < end < self.size_bytes:
            return False
        self.file.truncate(end)
        self.size_bytes = end
        return True

    def as_segment(self) -> Segment:
        """The segment for a writer, which writes to it only after a new `begin`."""
        segment = Segment(self.path, self.file, self.size_bytes)
        segment.header = self.header if self.counts else None
        segment.end = self.end
        segment.last_sequence = self.last_sequence
        return segment


@attrs.define
class Journal:
    """The segments of a journal's directory. The replay fills `damages`."""

    used: list[FoundSegment]
    """Segments that count, in the order of their numbers."""
    others: list[FoundSegment]
    damages: list[Damage] = attrs.field(factory=list)
    known_horizon: int = 0
    """A durable horizon that the provider has from elsewhere."""

    def leave_out(self, segment: FoundSegment) -> None:
        """Note that a segment that seemed to count was free, and does not."""
        segment.set_free()
        self.used.remove(segment)
        self.others.append(segment)

    @property
    def lost_headers(self) -> int:
        """Number of headers that do not check: each may have recorded a higher epoch."""
        return sum(segment.is_guessed for segment in self.used) + sum(segment.is_unreadable for segment in self.others)

    @property
    def is_doubtful(self) -> bool:
        """Batches may be missing, be it only a torn last one: a checkpoint record may be among them."""
        return bool(self.damages or self.lost_headers or self.torn)

    @property
    def torn(self) -> list[FoundSegment]:
        """Segments whose last batch is not whole."""
        return [segment for segment in (*self.used, *self.others) if segment.is_torn]

    def know_horizon(self, horizon: int) -> None:
        """Note a durable horizon that the provider has from elsewhere."""
        self.known_horizon = horizon

    def explain(self, left: Iterable[Damage]) -> None:
        """Note that of the damages these are left: the others are none."""
        self.damages = list(left)

    def close(self) -> None:
        """Close every segment."""
        for segment in (*self.used, *self.others):
            close_read(segment.file)

    @property
    def highest_number(self) -> int:
        """The highest number in any header or name, so that no segment is ever renamed over another."""
        segments = (*self.used, *self.others)
        numbers = [s.header.number for s in segments if s.header is not None]
        return max([*numbers, *(named_number(s.path) for s in segments)], default=0)

    @property
    def epoch(self) -> int:
        """The highest epoch in any header, counting or not, so that no spool id is ever used twice."""
        return max((s.header.epoch for s in (*self.used, *self.others) if s.header is not None), default=0)

    @property
    def horizon(self) -> int:
        """The newest horizon in a header; it was durable before that header was written. Or `known_horizon`."""
        return max((self.known_horizon, *(s.header.horizon for s in self.used if s.header is not None)))


def survey(disk: IDisk, directory: str) -> Journal:
    """Open every segment and read the headers. Files of other names are ignored. Raises OSError, `NewerFormat`."""
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
    """Arrange segments as one journal: those that count, in order, each with the limit set by later headers. Raises
    OSError."""
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
    """Derive the headers that do not check from first batches, where those do."""
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
    """The number in the name of a segment; 0: none."""
    stem = os.path.basename(path).removesuffix(SUFFIX)
    return int(stem) if stem.isascii() and stem.isdigit() and len(stem) <= _MOST_DIGITS else 0


def freed_number(path: str) -> int:
    """The number that a free segment had, by its name (`free_name`); 0: none. A segment that was never used has a shorter
    name with a number of another kind (`pool`)."""
    name = os.path.basename(path)
    number = named_number(name.removeprefix(READY_NAME))
    return number if name == free_name(number) else 0


def _order(segment: FoundSegment) -> tuple[int, bool, int]:
    """A later segment has a higher number and no lower first sequence. The number of a derived header does not count."""
    assert segment.header is not None
    return segment.header.first_sequence, not segment.is_guessed, segment.header.number


def look_at(path: str, disk: IDisk) -> FoundSegment:
    """Open one segment; all of it is read only where its first batch is long or missing. Raises OSError, `NewerFormat`."""
    file = disk.open(path)
    try:
        return look_at_file(path, file)
    except BaseException:
        close_read(file)
        raise


def look_at_file(path: str, file: IFile) -> FoundSegment:
    """Examine an open segment. Raises OSError, `NewerFormat`."""
    data = file.read_at(0, FIRST_LOOK)
    refuse_newer_segment(path, data)
    header = decode_header(data[:BLOCK])
    size = file.size()
    counts = header is not None and _begins(data, header)
    if header is not None and not counts and len(data) < size:
        claimed = BLOCK + padded_size(claimed_size(data, BLOCK))  # a long first batch is no reason to read all
        counts = FIRST_LOOK < claimed <= size and _begins(file.read_at(0, claimed), header)
    if header is not None and not counts:
        data = file.read_at(0, size)
        counts = next(read_batches(data, header), None) is not None
    if header is None and is_unused(data) and named_number(path):
        data = file.read_at(0, size)  # a file with a number has been begun: zeros may have replaced its header
    found = FoundSegment(path, file, size, header, counts, is_unreadable=header is None and not is_unused(data))
    if header is not None:
        found.is_torn = not counts and looks_torn(data, BLOCK, header.nonce)
    return found


def refuse_newer_segment(path: str, data: bytes) -> None:
    """Raise `NewerFormat` where a newer program wrote the segment that begins with `data`. Free segments are refused too:
    only the newer program knows which are free in its format."""
    found = header_format(data[:BLOCK])
    if found > NEWEST_FORMAT:
        raise newer_format(path, found, NEWEST_FORMAT)


def _begins(data: bytes, header: SegmentHeader) -> bool:
    """Whether these bytes hold the first batch as a whole."""
    batch = decode_batch(data, BLOCK, header.nonce)
    return batch is not None and batch.sequence == header.first_sequence


def replay(journal: Journal) -> Iterator[tuple[FoundSegment, Batch]]:
    """The batches that count, in order, without those up to the horizon of `journal`.

    A checkpoint among them may record a later horizon: the caller drops records up to that one, and calls
    `drop_explained` for the damages.
    """
    expected = journal.horizon + 1
    for segment, following in zip_longest(journal.used, journal.used[1:]):
        assert segment.header is not None
        behind = _sure_beginning(following)
        if behind is not None and behind <= expected:
            segment.last_sequence = behind - 1  # all batches here are below the horizon: nothing is read
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
    """A derived header means damage if its own was ever durable: the second batch is written only when the first one is."""
    assert segment.header is not None
    if segment.is_guessed and segment.last_sequence > segment.header.first_sequence:
        journal.damages.append(Damage(segment.path, 0, BLOCK, segment.last_sequence + 1))


def replay_behind(journal: Journal, horizon: int) -> Iterator[tuple[FoundSegment, Batch]]:
    """Replay once more the batches above `horizon` that count; segments without such a batch are not read."""
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
    """Drop damages up to the horizon: segments below it are reused in any order."""
    journal.damages = [damage for damage in journal.damages if damage.before - 1 > horizon]


def read_batches(data: bytes, header: SegmentHeader) -> Iterator[Batch]:
    """Batches in a segment's bytes that check, in order. Bytes that do not check are skipped up to the next valid batch."""
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
