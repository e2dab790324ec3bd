"""Resting envelopes: those that are in the log alone, known by pieces of it (pure).

    written, or not loaded --note--> a piece knows the earliest due time of each runner --due--> it is read
        -> what is due is loaded, of the rest the earliest due time is known again

A piece is about `PIECE_BYTES` of one segment. Memory is bounded by the length of the log: a piece keeps a time for each
runner, and the segments that its envelopes refer to, nothing for an envelope. What a start has not read yet are pieces of
which nothing is known: they count as due.

A runner is an area and a retry interval (`format.record.interval_of`).

*Rules*: a due time here may be too early, never too late. Times are UTC seconds.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from mailismus.queue.interface import Area, Entry, Filter, Latest, Message

PIECE_BYTES = 1 << 20
"""Bytes of a piece, about: read in one act."""

MOST_NEW = 20_000
"""Entries in memory, beyond which new ones rest in the log."""

MOST_LOADED = 20_000
"""Entries in memory that are not out, beyond which no more are loaded."""

NEAR_S = 60.0
"""Seconds before their time that entries stay in memory, while there is room."""

AHEAD_S = 600.0
"""Seconds before their time that resting entries are loaded, while there is room, when their piece is read anyway: so it
is read less often."""

AGAIN_S = 1.0
"""Seconds until a piece is read again for the due entries of senders that were passed over; twice as long each time."""

MOST_AGAIN_S = 32.0
"""The same, at most: other entries of such a sender wait in memory."""

_AREAS = tuple(Area)
_FIRST = {area: at << 8 for at, area in enumerate(_AREAS)}


def runner_of(area: Area, interval: int) -> int:
    """Return the number of the runner of an area and a retry interval."""
    return _FIRST[area] + interval


def dues_of(entries: Iterable[Entry], dues: Iterable[float], interval: int) -> dict[int, float]:
    """Return the earliest due time of each runner of an envelope with these entries, due at these times."""
    found: dict[int, float] = {}
    for entry, due_at in zip(entries, dues, strict=True):
        runner = runner_of(entry.area, interval)
        if due_at < found.get(runner, due_at + 1):
            found[runner] = due_at
    return found


def area_of(runner: int) -> Area:
    """Return the area of a runner."""
    return _AREAS[runner >> 8]


class Piece:
    """A piece of one segment, from the offset `begin` of a batch to where the next piece begins."""

    __slots__ = (
        "again_s",
        "begin",
        "counts",
        "dues",
        "flushes",
        "is_known",
        "late",
        "late_counts",
        "late_refers",
        "limits",
        "refers",
        "segment",
        "sequence",
    )

    def __init__(self, segment: int, begin: int, sequence: int, *, is_known: bool) -> None:
        self.segment, self.begin = segment, begin
        self.sequence = sequence
        """Of its first batch, or lower."""
        self.is_known = is_known
        self.dues: dict[int, float] = {}
        """Earliest due time of each runner that has resting envelopes here."""
        self.counts = dict.fromkeys(Area, 0)
        """Entries of each area that rest here, as far as is known."""
        self.late_counts = dict.fromkeys(Area, 0)
        """Of these, those that were noted since the reading of it began."""
        self.refers: set[int] = set()
        """Segments with contents of resting envelopes here, or more."""
        self.late_refers: set[int] = set()
        """Of those that were noted since the reading of it began."""
        self.again_s = AGAIN_S
        """Seconds until it is read again if nothing could be loaded for the senders' sake."""
        self.late: dict[int, float] | None = None
        """What was noted since the reading of it began; None: it is not being read."""
        self.flushes: list[tuple[int, Filter]] = []
        """Deferred entries that match one of these are due at once, in batches up to this sequence number."""
        self.limits: list[tuple[int, Latest]] = []
        """Until when entries may wait (`IQueue.hasten`), in batches up to this sequence number."""

    def due_in(self, area: Area) -> float | None:
        """Earliest due time in this area; None: nothing of it rests here, as far as is known."""
        if not self.is_known:
            return 0.0
        return min((due_at for runner, due_at in self.dues.items() if area_of(runner) is area), default=None)

    def hold_back(self, *, is_again: bool) -> None:
        """Note that it was read. `is_again`: senders were passed over, so it is read again, later each time."""
        self.again_s = min(MOST_AGAIN_S, 2 * self.again_s) if is_again else AGAIN_S

    def due_at(self, sequence: int, message: Message, entry: Entry) -> float:
        """When an entry that rests in this batch is due."""
        due_at = self.limited(sequence, entry.area, entry.attempts, entry.due_at)
        if entry.area is Area.DEFERRED and self.flushes:
            for newest, one in self.flushes:
                if sequence <= newest and one.spool_id in (None, message.spool_id) and one.matches(message, entry):
                    return 0.0
        return due_at

    def limited(self, sequence: int, area: Area, attempts: int, due_at: float) -> float:
        """Until when entries of this batch may wait that stand there after so many attempts, the earliest of them until
        `due_at`."""
        for newest, latest in self.limits:
            due_at = due_at if sequence > newest else latest(area, attempts, due_at)
        return due_at


class Resting:
    """The pieces of one log."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Area, 0)
        """Entries of each area that rest, as far as is known: exact when every piece is."""
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
        self, segment: int, begin: int, sequence: int, dues: Mapping[int, float], entries: Iterable[Entry], refers: int
    ) -> None:
        """Note an envelope with these entries, which rests in the batch at this offset. `dues`: the earliest due time of
        each of its runners; `refers`: the segment of its content, 0: there is none."""
        pieces = self._pieces.setdefault(segment, [])
        piece = self._last_before(pieces, begin)
        if piece is None or (piece is pieces[-1] and begin - piece.begin >= (PIECE_BYTES if piece.is_known else 1)):
            piece = Piece(segment, begin, sequence, is_known=True)
            insort(pieces, piece, key=_begin)
        for entry in entries:
            self.counts[entry.area] += 1
            piece.counts[entry.area] += 1
            piece.late_counts[entry.area] += piece.late is not None
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
        piece.late, piece.late_refers = {}, set()
        piece.late_counts = dict.fromkeys(Area, 0)

    def split(self, piece: Piece, begin: int, sequence: int, found: Mapping[Area, int]) -> None:
        """Let a piece end at this offset of a batch, and what lies behind be a piece of its own. `found`: entries of each
        area that rested before."""
        rest = Piece(piece.segment, begin, sequence, is_known=piece.is_known)
        rest.flushes, rest.limits, rest.refers = list(piece.flushes), list(piece.limits), set(piece.refers)
        if piece.is_known:
            for area, count in piece.counts.items():
                rest.counts[area] = count - piece.late_counts[area] - found[area]
                piece.counts[area] -= rest.counts[area]
        pieces = self._pieces[piece.segment]
        pieces.insert(pieces.index(piece) + 1, rest)
        if rest.is_known:
            for runner, due_at in piece.dues.items():
                self._lower(rest, runner, due_at)
        else:
            self._unknown.appendleft(rest)

    def replace(
        self, piece: Piece, dues: dict[int, float], counts: Mapping[Area, int], refers: set[int], *, is_flushed: bool
    ) -> None:
        """A piece was read: these are the earliest due times of what rests there, its entries of each area, and the segments
        of its contents. `is_flushed`: something that rests matches a flush."""
        late, piece.late = piece.late, None
        piece.refers, piece.late_refers = refers | piece.late_refers, set()
        if not self.has(piece):
            return
        for area, count in counts.items():
            self.counts[area] += count + piece.late_counts[area] - piece.counts[area]
            piece.counts[area] = count + piece.late_counts[area]
        piece.is_known = True
        piece.dues = {}
        for runner, due_at in (*dues.items(), *(late or {}).items()):
            self._lower(piece, runner, due_at)
        if not piece.dues:
            pieces = self._pieces[piece.segment]
            pieces.remove(piece)
            if not pieces:
                del self._pieces[piece.segment]
        elif not is_flushed:
            piece.flushes = []

    def concerning(self, segments: Collection[int]) -> Iterator[Piece]:
        """Yield the pieces with envelopes that may lie in these segments, or have their content there."""
        for piece in self.all():
            if piece.segment in segments or not piece.is_known or not piece.refers.isdisjoint(segments):
                yield piece

    def forget_segment(self, segment: int) -> None:
        """Nothing rests in this segment."""
        for piece in self._pieces.pop(segment, ()):
            for area, count in piece.counts.items():
                self.counts[area] -= count

    @property
    def unread(self) -> int:
        """Number of pieces of which nothing is known."""
        return sum(not piece.is_known and self.has(piece) for piece in self._unknown)

    def segments(self) -> list[int]:
        """Return the segments in which something rests, or may, in order."""
        return sorted(self._pieces)

    # what is due

    def next_due(self, area: Area) -> float | None:
        """Return when something of this area is due; None: nothing rests."""
        if not self.is_known:
            return 0.0
        found = self._first(area)
        return found[0] if found is not None else None

    def has_due(self, area: Area, until: float) -> bool:
        """Whether something of this area is known to be due by then."""
        found = self._first(area)
        return found is not None and found[0] <= until

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
        """Where it ends; None: with its segment."""
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

    # all

    def all(self) -> Iterator[Piece]:
        """Yield all pieces in the order of segments and offsets. They may change between two steps."""
        for segment in sorted(self._pieces):
            begin = -1
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
