"""Reading a log-structured queue that no server runs on, here or copied from elsewhere; nothing is changed.

*Rules*: what can't be read is passed over and told as a gap. Where a segment can't be read, that what it says is missing may
show entries that are over, and hide others. An envelope is one part of a listing here, as it is on a running queue.
"""

from __future__ import annotations

import errno
import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import attrs

from mailismus.disk.interface import IDisk, IFile, close_read
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Unavailable
from mailismus.journal.batch import BLOCK, decode_header
from mailismus.journal.lenient import NotRead, survey_leniently
from mailismus.journal.replay import FoundSegment
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.newer_formats import refuse_newer_journal
from mailismus.queue.gaps import Gaps, gap_of
from mailismus.queue.interface import Area, Filter, Gap, Message, Page, Summary
from mailismus.queue.providers.log.format.positions import NAME, Positions
from mailismus.queue.providers.log.format.record import ContentPlace, LogPlace, LogRecord
from mailismus.queue.providers.log.format.version import LOG
from mailismus.queue.providers.log.read.envelopes import (
    BatchReader,
    FoundEnvelope,
    SeenEnvelope,
    Stretch,
    Wanted,
    envelopes_of,
)
from mailismus.queue.providers.log.read.live_count import count_envelopes
from mailismus.queue.providers.log.read.looking import entries_in
from mailismus.queue.providers.log.read.seen import seen_batches
from mailismus.queue.providers.log.read.skim import SkimReader
from mailismus.queue.providers.log.recovery.opening import read_positions
from mailismus.queue.providers.log.recovery.replay import ReplayedLog, load_suffix
from mailismus.queue.stopped import StoppedCursor, StoppedQueue
from mailismus.queue.sums import AreaSums, new_sums, summary_of
from mailismus.spool.message_file import PIECE_SIZE, open_message

E = TypeVar("E", bound=SeenEnvelope)

_CHANGED = "has changed since it was read: does a server run on it now?"


class IOpener(Protocol):
    """What files are opened from."""

    def open(self, path: str) -> IFile: ...


class LiveEnvelopes:
    """All live envelopes of a log on files, in its order: those that are not marked, and those that work is going on of,
    without the entries that have left them. Blocks. `not_read`: is told of segments that can't be read, `on_bad` of lines
    and records that do not check, `on_skipped` of bytes between batches (begin and end of each stretch)."""

    def __init__(
        self,
        disk: IOpener,
        replayed: ReplayedLog,
        positions: Positions | None,
        not_read: NotRead,
        on_bad: Callable[[str, Sequence[bytes]], None],
        on_skipped: Callable[[str, Sequence[tuple[int, int]]], None] | None = None,
    ) -> None:
        self._disk, self._works, self._not_read, self._on_bad = disk, replayed.works, not_read, on_bad
        self._on_skipped = on_skipped
        self._first = min((place.sequence for place in positions.runners.values()), default=0) if positions else 0
        if replayed.journal.is_doubtful or replayed.bad_records:
            self._first = 0  # as a start does (`found.find_messages`)
        ignored = positions.ignored if positions is not None else ()
        used = [(one.header.number, one) for one in replayed.journal.used if one.header is not None]
        self._segments = {number: one for number, one in used if number not in ignored}
        self._worked = sorted(place.sequence for place in self._works)

    @property
    def segments(self) -> Mapping[int, FoundSegment]:
        """The segments that count, by number, in order."""
        return self._segments

    @property
    def first(self) -> int:
        """No envelope that work has not begun on lies in a batch before this one."""
        return self._first

    def path_of(self, number: int) -> str | None:
        """The path of the segment of this number; None: there is none."""
        segment = self._segments.get(number)
        return segment.path if segment is not None else None

    def all(self) -> Iterator[FoundEnvelope]:
        """Yield them."""
        yield from self._each(_found_in)

    def seen(self, spool_id: SpoolId | None = None) -> Iterator[SeenEnvelope]:
        """Yield them without reading their contents. `spool_id`: those of this message alone."""
        yield from self._each(_seen_in, spool_id)

    def count(self, sums: Mapping[Area, AreaSums]) -> None:
        """Add them to the sums of a count."""

        def count_in(segment: _Reading) -> Iterator[SeenEnvelope]:
            if segment.has_work:
                yield from _seen_in(segment)
            else:
                count_envelopes(segment.stretch, (), sums)

        for one in self._each(count_in):
            for entry in one.entries:
                sums[entry.area].add_entry(one.message)

    def whole(self, one: SeenEnvelope) -> FoundEnvelope | None:
        """Return an envelope that was seen, with the place of its content; None: its batch does not check, or is gone."""
        segment = self._segments.get(one.segment)
        if segment is None:
            return None
        place = one.place
        found = self._of_segment(
            segment, _found_in, place.sequence - 1, lambda at, _: at == place, begin=one.batch, last=place.sequence
        )
        return next(found, None)

    def _each(self, read: Callable[[_Reading], Iterator[E]], spool_id: SpoolId | None = None) -> Iterator[E]:
        behind = 0

        def is_wanted(place: LogPlace, record: LogRecord) -> bool:
            if spool_id is not None and record.spool_id != spool_id:
                return False
            return not record.is_marked or place in self._works

        for segment in self._segments.values():
            last = segment.last_sequence
            has_work = bisect_right(self._worked, behind) < bisect_right(self._worked, last)
            if last > behind and (last >= self._first or has_work):
                yield from self._of_segment(segment, read, behind, is_wanted, has_work=has_work, only=spool_id)
            behind = max(behind, last)

    def _of_segment(
        self,
        segment: FoundSegment,
        read: Callable[[_Reading], Iterator[E]],
        behind: int,
        is_wanted: Wanted,
        *,
        begin: int = BLOCK,
        last: int | None = None,
        has_work: bool = True,
        only: SpoolId | None = None,
    ) -> Iterator[E]:
        header = segment.header
        assert header is not None
        try:
            file = self._disk.open(segment.path)
        except OSError as error:
            self._not_read(segment.path, error)
            return
        stretch = Stretch(file, header, begin, segment.size_bytes, behind, last or segment.last_sequence)
        reading = _Reading(stretch, is_wanted, has_work=has_work, only=only)
        try:
            if decode_header(file.read_at(0, BLOCK)) != header and not segment.is_guessed:
                self._not_read(segment.path, OSError(errno.ESTALE, f"it {_CHANGED}"))
                return
            for one in read(reading):
                left = self._without_gone(one)
                if left.entries:
                    yield left
            if reading.skipped and self._on_skipped is not None:
                self._on_skipped(segment.path, reading.skipped)
        except OSError as error:
            self._not_read(segment.path, error)
        finally:
            close_read(file)
        if reading.bad:
            self._on_bad(segment.path, reading.bad)

    def _without_gone(self, one: E) -> E:
        work = self._works.get(one.place)
        if work is None:
            return one
        entries = [] if work.is_garbage else [entry for entry in one.entries if entry.number not in work.gone]
        return attrs.evolve(one, entries=entries)


@attrs.frozen
class _Reading:
    """A segment that is read. `has_work`: it may hold envelopes that records in the suffix are about; `only`: envelopes of
    this message alone are wanted; `bad`, `skipped`: what did not check."""

    stretch: Stretch
    is_wanted: Wanted
    has_work: bool
    only: SpoolId | None = None
    bad: list[bytes] = attrs.field(factory=list)
    skipped: list[tuple[int, int]] = attrs.field(factory=list)

    @property
    def number(self) -> int:
        """Of the segment."""
        return self.stretch.header.number


def _found_in(segment: _Reading) -> Iterator[FoundEnvelope]:
    reader = BatchReader(segment.stretch)
    while (batch := reader.next()) is not None:
        yield from envelopes_of(batch, segment.number, segment.is_wanted, segment.bad)
    segment.skipped.extend(reader.skipped)


def _seen_in(segment: _Reading) -> Iterator[SeenEnvelope]:
    reader = SkimReader(segment.stretch, segment.only)
    for seen in seen_batches(reader, segment.number, segment.is_wanted, segment.bad):
        yield from seen
    segment.skipped.extend(reader.whole.skipped)


class StoppedLog:
    """Searches and contents of one stopped log (`queue.stopped.StoppedSearch`)."""

    def __init__(self, live: LiveEnvelopes, disk: IDisk, spool_path: str) -> None:
        self._live, self._disk, self._spool_path = live, disk, spool_path
        self._seen: dict[SpoolId, SeenEnvelope] = {}
        """An envelope of each message of the last page."""

    async def summarize(self) -> Summary:
        sums = new_sums()
        self._live.count(sums)
        return summary_of(sums)

    async def search(self, wanted: Filter, after: object | None, limit: int) -> Page:
        self._seen = {}
        cursor = after if isinstance(after, StoppedCursor) else StoppedCursor(self._matching(wanted))
        return cursor.page(limit)

    def _matching(self, wanted: Filter) -> Iterator[Message]:
        """The messages with entries that match."""
        for one in self._live.seen(wanted.spool_id):
            entries = entries_in(one, wanted)
            if entries:
                self._seen[one.message.spool_id] = one
                yield attrs.evolve(one.message, entries=entries)

    def read(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        """The content of a message that is there, in pieces, in order. Raises `StorageError`, `OSError`."""
        seen = self._seen.get(spool_id) or next(self._live.seen(spool_id), None)
        if seen is None:
            return self.content_of(spool_id, None, 0)
        one = self._live.whole(seen)
        if one is None:
            raise Unavailable(f"the message does not check in its segment, or the log {_CHANGED}")
        return self.content_of(spool_id, one.content, one.message.stored_bytes)

    def content_of(self, spool_id: SpoolId, place: ContentPlace | None, size_bytes: int) -> Generator[bytes, None, None]:
        """The content of a message, of so many bytes, at a place in the log; None: in its message file. Raises as `read`."""
        return self._from_spool(spool_id) if place is None else self._from_log(place, size_bytes)

    def _from_spool(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        reader = open_message(self._disk, self._spool_path, spool_id)
        try:
            while piece := reader.read():
                yield piece
        finally:
            reader.close()

    def _from_log(self, place: ContentPlace, size_bytes: int) -> Generator[bytes, None, None]:
        path = self._live.path_of(place.segment)
        if path is None:
            raise Unavailable("the content lies in a segment of the log that is not there")
        file = self._disk.open(path)
        try:
            content = file.read_at(place.offset, size_bytes)
            header = decode_header(file.read_at(0, BLOCK))
        finally:
            close_read(file)
        if zlib.crc32(content) != place.checksum:
            if header is None or header.number != place.segment:
                raise Unavailable(f"the log {_CHANGED}")
            raise Unavailable("the content does not check in its segment: cut or overwritten there")
        for at in range(0, len(content), PIECE_SIZE):
            yield content[at : at + PIECE_SIZE]


def open_readonly(queue_path: str, spool_path: str, disk: IDisk | None = None) -> StoppedQueue:
    """The queue in these directories. Raises `NewerFormat`, or OSError: FileNotFoundError where there is no queue."""
    gaps = Gaps()

    def not_read(path: str, error: OSError, what: str = "segment") -> None:
        gaps.add((gap_of(what, path, error),))

    disk = disk or PosixDisk(Access.READ_ONLY)
    directory = os.path.join(queue_path, LOG)
    if not disk.exists(directory):
        raise FileNotFoundError(2, "no queue is here", queue_path)
    refuse_newer_journal(disk, directory)
    try:
        positions = read_positions(disk, queue_path)
    except OSError as error:
        positions = None
        not_read(os.path.join(queue_path, NAME), error, "file of positions")
    journal = survey_leniently(disk, directory, not_read)
    if positions is not None:
        journal.know_horizon(positions.suffix - 1)
    replayed = load_suffix(journal)
    journal.close()

    def on_bad(path: str, bad: Sequence[bytes]) -> None:
        gaps.add((Gap("line of the log", "does not check", len(bad), path),))

    stopped = StoppedLog(LiveEnvelopes(disk, replayed, positions, not_read, on_bad), disk, spool_path)
    return StoppedQueue(stopped, stopped.read, gaps)
