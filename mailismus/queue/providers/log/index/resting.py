"""Resting envelopes: those that are in the log alone, known by pieces of it (pure).

    written, or not loaded --note--> a piece knows the earliest due time of each runner --due--> it is read
        -> what is due is loaded, of the rest the earliest due time is known again

Memory is bounded by the length of the log: a piece (`index.piece`) is about `PIECE_BYTES` of one segment. What a start has
not read yet are pieces of which nothing is known: they count as due.

*Rules*: a due time here may be too early, never too late. Times are UTC seconds.
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Filter, Latest, Message
from mailismus.queue.providers.log.index.amount import NOTHING, RestAmount
from mailismus.queue.providers.log.index.id_marks import IdMarks
from mailismus.queue.providers.log.index.piece import PIECE_BYTES, Piece, PieceRest, area_of


class Resting:
    """The pieces of one log."""

    def __init__(self) -> None:
        self.amounts = dict.fromkeys(Area, NOTHING)
        """Of each area, what rests, as far as is known: exact when every piece is."""
        self._pieces: dict[int, list[Piece]] = {}
        """By segment, in the order of their offsets."""
        self._heaps: dict[Area, list[tuple[float, int, Piece]]] = {area: [] for area in Area}
        self._numbers = itertools.count()
        self._unknown: deque[Piece] = deque()
        self._hints: dict[Area, deque[int]] = {area: deque() for area in Area}
        """Segments that are read first for an area."""
        self._held: dict[Area, dict[Piece, None]] = {area: {} for area in Area}
        """Pieces with due entries that were not loaded for their senders' sake; those that have waited longest first."""

    # what rests

    @property
    def is_empty(self) -> bool:
        """Whether nothing rests, for sure."""
        return not self._pieces

    @property
    def is_known(self) -> bool:
        """Whether every piece has been read, or was written by this run."""
        while self._unknown and (self._unknown[0].is_known or not self.has(self._unknown[0])):
            self._unknown.popleft()
        return not self._unknown

    def add_unknown(self, segment: int, begin: int, sequence: int) -> None:
        """Add a piece of which nothing is known, behind all others of its segment."""
        piece = Piece(segment, begin, sequence, is_known=False)
        self._pieces.setdefault(segment, []).append(piece)
        self._unknown.append(piece)

    def note(
        self,
        segment: int,
        begin: int,
        sequence: int,
        dues: Mapping[int, float],
        message: Message,
        entries: Iterable[Entry],
        refers: int,
    ) -> None:
        """Note an envelope with these entries of a message, which rests in the batch at this offset. `dues`: the earliest
        due time of each of its runners; `refers`: the segment of its content, 0: there is none."""
        pieces = self._pieces.setdefault(segment, [])
        piece = self._last_before(pieces, begin)
        if piece is None or (piece is pieces[-1] and begin - piece.begin >= (PIECE_BYTES if piece.is_known else 1)):
            piece = Piece(segment, begin, sequence, is_known=True, end=begin)
            insort(pieces, piece, key=_begin)
        piece.reach(begin)
        piece.ids.add(message.spool_id)
        if piece.late is not None:
            piece.late_ids.add(message.spool_id)
        for entry in entries:
            one = RestAmount.of(1, message.recipient_count, message.stored_bytes)
            for amounts in (self.amounts, piece.amounts, *((piece.late_amounts,) if piece.late is not None else ())):
                amounts[entry.area] = amounts[entry.area].plus(one)
        for runner, due_at in dues.items():
            self._lower(piece, runner, due_at)
            if piece.late is not None:
                piece.late[runner] = min(piece.late.get(runner, due_at), due_at)
        if refers:
            piece.refers.add(refers)
            piece.late_refers.add(refers)

    def _last_before(self, pieces: list[Piece], begin: int) -> Piece | None:
        at = bisect_right(pieces, begin, key=_begin)
        return pieces[at - 1] if at else None

    def _lower(self, piece: Piece, runner: int, due_at: float) -> None:
        if due_at < piece.dues.get(runner, due_at + 1):
            piece.dues[runner] = due_at
            heapq.heappush(self._heaps[area_of(runner)], (due_at, next(self._numbers), piece))

    def begin_reading(self, piece: Piece) -> None:
        """A piece is being read: what is noted in it from now on may not be seen."""
        piece.late, piece.late_refers, piece.late_ids = {}, set(), IdMarks()
        piece.late_amounts = dict.fromkeys(Area, NOTHING)

    def split(self, piece: Piece, begin: int, sequence: int, found: Mapping[Area, RestAmount]) -> None:
        """Let a piece end at this offset of a batch, and what rests behind be a piece of its own. `found`: what of each area
        rested before."""
        rest = Piece(piece.segment, begin, sequence, is_known=piece.is_known, end=piece.end)
        piece.end_at(begin)
        rest.flushes, rest.limits, rest.refers = list(piece.flushes), list(piece.limits), set(piece.refers)
        if piece.is_known:
            rest.ids = piece.ids
            for area, amount in piece.amounts.items():
                rest.amounts[area] = amount.minus(piece.late_amounts[area]).minus(found[area])
                piece.amounts[area] = amount.minus(rest.amounts[area])
        pieces = self._pieces[piece.segment]
        pieces.insert(pieces.index(piece) + 1, rest)
        if rest.is_known:
            for runner, due_at in piece.dues.items():
                self._lower(rest, runner, due_at)
        else:
            self._unknown.appendleft(rest)

    def replace(self, piece: Piece, rest: PieceRest) -> None:
        """A piece was read: this rests there, and what was noted since the reading began."""
        late, piece.late = piece.late, None
        piece.refers, piece.late_refers = rest.refers | piece.late_refers, set()
        piece.ids, piece.late_ids = rest.ids.plus(piece.late_ids), IdMarks()
        if not self.has(piece):
            return
        for area, amount in rest.amounts.items():
            present = amount.plus(piece.late_amounts[area])
            self.amounts[area] = self.amounts[area].plus(present).minus(piece.amounts[area])
            piece.amounts[area] = present
        piece.is_known = True
        piece.end_at(self.end_of(piece) or math.inf)
        piece.dues = {}
        for runner, due_at in (*rest.dues.items(), *(late or {}).items()):
            self._lower(piece, runner, due_at)
        if not piece.dues:
            self._remove(piece)
        elif not rest.is_flushed and min((late or {}).values(), default=1.0) > 0.0:
            piece.flushes = []

    def lessen(self, piece: Piece, spool_id: SpoolId, amounts: Mapping[Area, RestAmount]) -> None:
        """An envelope of this message with these entries was loaded from a known piece. The times of the piece stay: they
        may be too early."""
        for area, amount in amounts.items():
            self.amounts[area] = self.amounts[area].minus(amount)
            piece.amounts[area] = piece.amounts[area].minus(amount)
        piece.ids.remove(spool_id)
        if not any(amount.entries for amount in piece.amounts.values()):
            self._remove(piece)

    def _remove(self, piece: Piece) -> None:
        """Nothing rests in this piece."""
        pieces = self._pieces[piece.segment]
        pieces.remove(piece)
        if not pieces:
            del self._pieces[piece.segment]

    def concerning(self, segments: Collection[int]) -> Iterator[Piece]:
        """Yield the pieces with envelopes that may lie in these segments, or have their content there."""
        for piece in self.all():
            if piece.segment in segments or not piece.is_known or not piece.refers.isdisjoint(segments):
                yield piece

    def forget_segment(self, segment: int) -> None:
        """Nothing rests in this segment."""
        for piece in self._pieces.pop(segment, ()):
            for area, amount in piece.amounts.items():
                self.amounts[area] = self.amounts[area].minus(amount)

    @property
    def unread(self) -> int:
        """Number of pieces of which nothing is known."""
        return sum(not piece.is_known and self.has(piece) for piece in self._unknown)

    def segments(self) -> list[int]:
        """Return the segments in which something rests, or may, in order."""
        return sorted(self._pieces)

    def last_segment(self) -> int:
        """Return the newest of them; 0: nothing rests."""
        return max(self._pieces, default=0)

    # what is due

    def next_due(self, area: Area) -> float | None:
        """Return when something of this area is due; None: nothing rests."""
        if not self.is_known:
            return 0.0
        found = self._first(area)
        return found[0] if found is not None else None

    def due_piece(self, area: Area, until: float, *, is_learnt_anyway: bool) -> Piece | None:
        """Return a piece with something of this area that is due by then, or of which nothing is known.
        `is_learnt_anyway`: of the latter only those that a runner of this area leads to; others are read without a take."""
        found = self._first(area)
        if found is not None and found[0] <= until:
            return found[1]
        return self._first_unknown(area, is_learnt_anyway=is_learnt_anyway)

    def hold(self, piece: Piece, areas: Collection[Area]) -> None:
        """A piece was read, and due entries of these areas were not loaded: their senders were passed over."""
        for area, held in self._held.items():
            held.pop(piece, None)
            if area in areas:
                held[piece] = None

    def has_held(self, area: Area) -> bool:
        """Whether there may be such a piece."""
        return bool(self._held[area])

    def release(self, area: Area) -> Piece | None:
        """Let such a piece be due at once: there is room in memory again. None: there is none."""
        held = self._held[area]
        while held:
            piece = next(iter(held))
            del held[piece]
            runners = [runner for runner in piece.dues if area_of(runner) is area]
            if runners and self.has(piece):
                for runner in runners:
                    self._lower(piece, runner, 0.0)
                return piece
        return None

    def _first_unknown(self, area: Area, *, is_learnt_anyway: bool) -> Piece | None:
        hints = self._hints[area]
        while hints:
            unknown = [piece for piece in self._pieces.get(hints[0], ()) if not piece.is_known]
            if unknown:
                return unknown[0]
            hints.popleft()
        return self._unknown[0] if not is_learnt_anyway and not self.is_known else None

    def _first(self, area: Area) -> tuple[float, Piece] | None:
        heap = self._heaps[area]
        while heap:
            due_at, _, piece = heap[0]
            if self.has(piece) and piece.due_in(area) == due_at:
                return due_at, piece
            heapq.heappop(heap)
        return None

    def has(self, piece: Piece) -> bool:
        """Whether it is a piece still."""
        pieces = self._pieces.get(piece.segment)
        if not pieces:
            return False
        at = bisect_right(pieces, piece.begin, key=_begin)
        return bool(at) and pieces[at - 1] is piece

    def end_of(self, piece: Piece) -> int | None:
        """Where the next one begins; None: it is the last of its segment."""
        pieces = self._pieces[piece.segment]
        at = bisect_right(pieces, piece.begin, key=_begin)
        return pieces[at].begin if at < len(pieces) else None

    def hasten(self, latest: Latest, newest: int) -> set[Area]:
        """As `IQueue.hasten`. `newest`: sequence number of the newest batch. Return the areas in which something may be due
        earlier."""
        touched: set[Area] = set()
        for piece in self.all():
            piece.limits.append((newest, latest))
            for runner, due_at in list(piece.dues.items()):
                area = area_of(runner)
                until = latest(area, None, due_at)
                if until < due_at:
                    self._lower(piece, runner, until)
                    touched.add(area)
        return touched

    def flush(self, piece: Piece, wanted: Filter, newest: int, runners: Sequence[int]) -> None:
        """Entries of this piece that match, of these runners, are due at once. `newest`: sequence number of the newest
        batch that may hold such entries."""
        piece.flushes = [flush for flush in piece.flushes if flush[1] != wanted]
        piece.flushes.append((newest, wanted))
        for runner in runners:
            self._lower(piece, runner, 0.0)
            if piece.late is not None and runner in piece.late:
                piece.late[runner] = 0.0

    # all

    def all(self, first: int = 0, offset: int = 0) -> Iterator[Piece]:
        """Yield all pieces in the order of segments and offsets, from the one at this offset of this segment on. They may
        change between two steps."""
        for segment in [number for number in sorted(self._pieces) if number >= first]:
            begin = -1
            if segment == first and (piece := self._last_before(self._pieces.get(segment, []), offset)) is not None:
                begin = piece.begin - 1
            while pieces := self._pieces.get(segment):
                at = bisect_right(pieces, begin, key=_begin)
                if at == len(pieces):
                    break
                begin = pieces[at].begin
                yield pieces[at]

    def runners(self) -> dict[int, int]:
        """Return the sequence number of the first piece in which each runner has something, as far as is known."""
        found: dict[int, int] = {}
        for piece in self.all():
            for runner in piece.dues:
                found.setdefault(runner, piece.sequence)
        return found

    def hint(self, area: Area, segment: int) -> None:
        """Of what is not known, read this segment first for this area: a runner of it had come so far."""
        self._hints[area].append(segment)

    def first_sequence(self) -> int | None:
        """Return the first sequence number of the first piece; None: nothing rests."""
        return min((piece.sequence for piece in self.all()), default=None)


def _begin(piece: Piece) -> int:
    return piece.begin
