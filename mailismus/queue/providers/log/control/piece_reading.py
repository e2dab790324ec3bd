"""Reading of pieces: what rests in a piece is loaded where it is wanted, and known of the rest.

    all lines of a piece -> what is wanted goes to the working set -> earliest due times and counts of the rest
    outlines of a piece  -> the same of all of it, nothing is loaded
    a few messages of it -> what is wanted of them is loaded; nothing is parsed of the others, and nothing learnt
    a slice of a piece   -> its entries are looked at, without their contents; nothing is learnt

*Rules*: a batch is read when all its items have been told that it is durable. No marks are written meanwhile: what is found
unmarked, and neither in the working set nor garbage that waits for its mark, rests. An envelope is known by its place, and
loaded once.

*Not here*: which piece is read, and what is wanted (`control.loading`, `control.learning`, `control.visits`); batches and
lines (`read.pieces`).
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

import attrs
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from mailismus.disk.worker import IWorker
from mailismus.journal.batch import BLOCK
from mailismus.journal.commit import GroupCommit
from mailismus.journal.segment import Segment
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.control.ledger import LogLedger
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.format.record import LogPlace
from mailismus.queue.providers.log.index.amount import NOTHING
from mailismus.queue.providers.log.index.piece import PIECE_BYTES, Piece, PieceRest, dues_of, runner_of
from mailismus.queue.providers.log.index.rest_counts import RestCounts
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.read.count_plan import PlannedSegment
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope, Stretch
from mailismus.queue.providers.log.read.pieces import (
    OutlinedPiece,
    ReadPiece,
    outline_piece,
    pick_envelopes,
    read_piece,
)
from mailismus.queue.providers.log.read.quarantine import LogDamage
from mailismus.queue.providers.log.read.seen import look_at
from mailismus.queue.providers.log.read.visit import PieceVisit, Position
from mailismus.queue.throttle import WorkThrottle


class EnvelopeChoice(enum.Enum):
    """What becomes of an envelope that is read."""

    LOAD = "it goes to the working set"
    LEAVE = "it rests"
    HOLD = "it rests, though it is due: its sender was passed over"


Choose = Callable[[FoundEnvelope, float], EnvelopeChoice]
"""What becomes of an envelope, by the time when the first of its entries is due (UTC seconds)."""

_LOAD, _HOLD = EnvelopeChoice.LOAD, EnvelopeChoice.HOLD

T = TypeVar("T")

_UNREADABLE = "Segment {path} of the queue can't be read: {error}"

SLICE_ENTRIES = 200
"""Entries that a look reads at once, about: some milliseconds of work."""


@attrs.frozen
class Looked:
    """A look at a slice of a piece. `end`: where the next one begins; `used_s`: processor seconds in the worker."""

    end: Position
    used_s: float = 0.0
    is_whole: bool = True
    """It could be read."""


class PieceReading:
    """Reads pieces of one queue. `behind`: of each segment that a start found, a sequence number before its batches; `lock`:
    held while a piece is read, and while marks are written."""

    _log = Logger()

    def __init__(
        self,
        resting: Resting,
        ledger: LogLedger,
        segments: LogSegments,
        commits: GroupCommit,
        behind: Mapping[int, int],
        worker: IWorker,
        lock: DeferredLock,
        damage: LogDamage,
        throttle: WorkThrottle,
    ) -> None:
        self._resting, self._ledger, self._segments, self._commits = resting, ledger, segments, commits
        self._behind, self._worker, self._lock, self._damage = behind, worker, lock, damage
        self._throttle = throttle
        self._visits: list[PieceVisit] = []
        self.pieces_read = self.pieces_picked = self.slices_read = 0

    # visits

    def add_visit(self, visit: PieceVisit) -> None:
        """Tell this visit of what is loaded from now on."""
        self._visits.append(visit)

    def remove_visit(self, visit: PieceVisit) -> None:
        """A visit has ended."""
        self._visits.remove(visit)

    # all lines

    async def read(self, piece: Piece, choose: Choose, now: float) -> bool:
        """Read a piece, load the chosen envelopes, and note what is known of the rest. Return whether it could be read."""
        await self._lock.acquire()
        try:
            return await self._read(piece, choose, now)
        finally:
            self._lock.release()

    async def _read(self, piece: Piece, choose: Choose, now: float) -> bool:
        segment = self._segment_of(piece)
        if segment is None:
            return True
        try:
            read = await self._run(partial(read_piece, until=piece.end), piece, segment)
        except OSError as error:
            self._log.error(_UNREADABLE, path=segment.path, error=error)
            return False
        self.pieces_read += 1
        await self._damage.keep(segment.path, segment.file, read.damages, read.bad)
        if read.is_doubtful:
            self._damage.doubt(segment.path)
        if self._resting.has(piece):
            self._load(piece, read, choose, now)
        return True

    def _load(self, piece: Piece, read: ReadPiece, choose: Choose, now: float) -> None:
        resting = self._resting
        rest, rested = PieceRest(), dict.fromkeys(Area, NOTHING)
        held: set[Area] = set()
        for one in self._resting_of(piece, read.found):
            amounts = one.amounts()
            for area, amount in amounts.items():
                rested[area] = rested[area].plus(amount)
            times = _times(piece, one)
            choice = choose(one, min(times))
            if choice is _LOAD:
                self._load_one(piece, one, now)
                continue
            if not piece.is_known:
                self._ledger.hold(one)
            is_flushed = min(times) <= 0.0
            if choice is _HOLD:
                held.add(one.entries[0].area)
                times = [max(due_at, now + piece.again_s) for due_at in times]
            dues, content_segment = dues_of(one.entries, times, one.interval), one.content.segment if one.content else 0
            rest.add(one.message.spool_id, dues, amounts.items(), content_segment, is_flushed=is_flushed)
        if read.end is not None:
            resting.split(piece, *read.end, rested)
        resting.replace(piece, rest)
        piece.hold_back(is_again=bool(held))
        resting.hold(piece, held)

    def _resting_of(self, piece: Piece, found: Iterable[FoundEnvelope]) -> Iterator[FoundEnvelope]:
        """Yield those that rest of the unmarked envelopes of a piece."""
        garbage = self._garbage_in(piece.segment)
        for one in found:
            if one.offset in garbage or self._is_loaded(one.message.spool_id, one.place):
                continue
            yield one

    def _load_one(self, piece: Piece, one: FoundEnvelope, now: float) -> None:
        """Load an envelope. Visits see it before: they may make it due."""
        for visit in self._visits:
            visit.see(one, piece)
        self._ledger.load(one, _times(piece, one), now, self._commits.applied_sequence, is_held=piece.is_known)

    # a few messages

    async def pick(self, piece: Piece, spool_ids: Collection[SpoolId], choose: Choose, now: float) -> bool:
        """Load the chosen envelopes of these messages. Return whether the piece could be read. Of a piece of which nothing
        is known, its outlines are read before, or all of it where they do not check."""
        if not piece.is_known and not await self.outline(piece):
            return await self.read(piece, choose, now)
        await self._lock.acquire()
        try:
            segment = self._segment_of(piece)
            if segment is None or not any(map(piece.may_have, spool_ids)):
                return True
            stretch = self._stretch(piece, segment, piece.begin)
            try:
                found = await self._worker.run(partial(pick_envelopes, stretch, piece.segment, spool_ids, until=piece.end))
            except OSError as error:
                self._log.error(_UNREADABLE, path=segment.path, error=error)
                return False
            self.pieces_picked += 1
            for one in self._resting_of(piece, found):
                if self._resting.has(piece) and choose(one, min(_times(piece, one))) is _LOAD:
                    amounts = one.amounts()
                    self._load_one(piece, one, now)
                    self._resting.lessen(piece, one.message.spool_id, amounts)
            return True
        finally:
            self._lock.release()

    # outlines

    async def outline(self, piece: Piece) -> bool:
        """Learn what rests in a piece of which nothing is known. Return whether that could be done by outlines alone."""
        await self._lock.acquire()
        try:
            segment = self._segment_of(piece)
            if segment is None or piece.is_known:
                return True
            if piece.flushes:
                return False
            try:
                read = await self._run(outline_piece, piece, segment)
            except OSError:
                return False
            if read is None or piece.flushes:
                return False
            self.pieces_read += 1
            if self._resting.has(piece):
                self._learn(piece, read)
            return True
        finally:
            self._lock.release()

    def _learn(self, piece: Piece, read: OutlinedPiece) -> None:
        number, garbage, rest = piece.segment, self._garbage_in(piece.segment), PieceRest()
        for one in read.found:
            if one.offset in garbage or self._is_loaded(one.spool_id, one.place):
                continue
            self._ledger.hold_outline(one, number)
            dues: dict[int, float] = {}
            for (area, attempts), stored_at in one.dues.items():
                due_at = piece.limited(one.place.sequence, area, attempts, stored_at)
                runner = runner_of(area, one.interval)
                dues[runner] = min(dues.get(runner, due_at), due_at)
            rest.add(one.spool_id, dues, one.amounts.items(), one.content_segment)
        if read.end is not None:
            self._resting.split(piece, *read.end, rest.amounts)
        self._resting.replace(piece, rest)

    # slices

    async def look(
        self, piece: Piece, begin: Position, visit: PieceVisit, now: float, only: SpoolId | None = None
    ) -> Looked:
        """Have the envelopes of a visit looked at that rest in a piece from this position on, about `SLICE_ENTRIES`. Of a
        piece of which nothing is known, its outlines are read before. What does not check is read whole. `only`: those of
        this message alone are looked for."""
        if not piece.is_known and not await self.outline(piece):
            return await self._look_whole(piece, begin, visit, now)
        if not piece.may_have(only):
            return self.pass_over(piece, begin, visit)
        await self._lock.acquire()
        try:
            segment = self._segment_of(piece)
            if segment is None:
                return Looked(begin)
            stretch, is_last = self._stretch(piece, segment, begin[1]), self._resting.end_of(piece) is None
            act = partial(look_at, stretch, piece.segment, SLICE_ENTRIES, is_last_piece=is_last, only=only)
            try:
                read, used_s = await self._worker.run(self._throttle.metered(act))
            except OSError:
                read, used_s = None, 0.0
            if read is not None and read.is_whole:
                self.slices_read += 1
                garbage = self._garbage_in(piece.segment)
                for one in read.seen if self._resting.has(piece) else ():
                    if not (one.offset in garbage or self._is_loaded(one.message.spool_id, one.place)):
                        visit.see(one, piece)
                end = self._end_of(piece, begin) if read.end is None else (piece.segment, read.end)
                visit.pass_by(end)
                return Looked(end, used_s)
        finally:
            self._lock.release()
        return await self._look_whole(piece, begin, visit, now)

    def pass_over(self, piece: Piece, begin: Position, visit: PieceVisit, *, is_whole: bool = True) -> Looked:
        """As `look`, where nothing that the visit looks for rests in the piece, or it has seen all of it."""
        end = self._end_of(piece, begin)
        visit.pass_by(end)
        return Looked(end, is_whole=is_whole)

    async def _look_whole(self, piece: Piece, begin: Position, visit: PieceVisit, now: float) -> Looked:
        """As `look`, but read all of the piece."""

        def see(one: FoundEnvelope, _: float) -> EnvelopeChoice:
            visit.see(one, piece)
            return EnvelopeChoice.LEAVE

        await self._lock.acquire()
        try:
            return self.pass_over(piece, begin, visit, is_whole=await self._read(piece, see, now))
        finally:
            self._lock.release()

    def _end_of(self, piece: Piece, begin: Position) -> Position:
        """The position behind a piece; `begin` where nothing rests there any more."""
        if not self._resting.has(piece):
            return begin
        end = self._resting.end_of(piece)
        return (piece.segment, end) if end is not None else (piece.segment + 1, 0)

    # what all need

    def _segment_of(self, piece: Piece) -> Segment | None:
        """The segment of a piece; None: it is not there any more, and nothing rests in it."""
        return self._segments.in_use().get(piece.segment) if self._resting.has(piece) else None

    def _run(self, read: Callable[..., T], piece: Piece, segment: Segment) -> Deferred[T]:
        """Have a piece read in a worker, by `read_piece` or `outline_piece`. Fails with OSError."""
        stretch, is_last = self._stretch(piece, segment, piece.begin), self._resting.end_of(piece) is None
        self._resting.begin_reading(piece)
        return self._worker.run(partial(read, stretch, piece.segment, PIECE_BYTES, is_last_piece=is_last))

    def _stretch(self, piece: Piece, segment: Segment, begin: int) -> Stretch:
        assert segment.header is not None
        end, applied = self._resting.end_of(piece), self._commits.applied_sequence
        following = self._segments.in_use().get(piece.segment + 1)
        last = segment.last_sequence
        if following is not None and following.header is not None:
            last = following.header.first_sequence - 1
        return Stretch(
            segment.file,
            segment.header,
            max(BLOCK, begin),
            end or segment.end or segment.size_bytes,
            self._behind.get(piece.segment, 0),
            min(last, applied),
            is_exact=following is not None and last <= applied,
        )

    def _garbage_in(self, segment: int) -> set[int]:
        """The offsets of garbage there that waits for its mark."""
        return {one.offset for one in self._ledger.unmarked if one.segment == segment}

    def _is_loaded(self, spool_id: SpoolId, place: LogPlace) -> bool:
        """Whether the envelope of this message at this place is in memory."""
        known = self._ledger.working_set.messages.get(spool_id)
        return known is not None and any(envelope.place == place for envelope in known.envelopes())

    # counting in another process

    def planned(self) -> list[PlannedSegment]:
        """Return the segments in which something rests, or may."""
        segments, applied = self._segments.in_use(), self._commits.applied_sequence
        found: list[PlannedSegment] = []
        for rest in RestCounts(self._resting).segments():
            one = segments.get(rest.number)
            if one is not None:
                name, last = os.path.basename(one.path), min(one.last_sequence, applied)
                behind = self._behind.get(rest.number, 0)
                found.append(PlannedSegment(name, rest.number, behind, last, rest.stretches, rest.amounts))
        return found

    def hidden(self) -> dict[int, list[int]]:
        """Return, by segment, the offsets of unmarked records there that do not rest: in memory, or garbage."""
        found: dict[int, list[int]] = {number: [] for number in self._resting.segments()}
        for one in self._ledger.unmarked:
            if one.segment in found:
                found[one.segment].append(one.offset)
        for known in self._ledger.working_set.messages.values():
            for envelope in known.envelopes():
                if envelope.segment in found:
                    found[envelope.segment].append(envelope.offset)
        return found


def _times(piece: Piece, one: FoundEnvelope) -> list[float]:
    """Return when the entries of an envelope of a piece are due."""
    return [piece.due_at(one.place.sequence, one.message, entry) for entry in one.entries]
