"""Loading: resting envelopes are read from the log when they are due, or when somebody asks for them.

    piece due -> read in a worker -> what is due goes to the working set, of the rest the earliest due times are known

*Rules*: a batch is read when all its items have been told that it is durable. No marks are written meanwhile: what is found
unmarked, and neither in the working set nor garbage that waits for its mark, rests. At most `MOST_LOADED` entries are in
memory for the sake of being due; others wait in the log. An envelope is known by its place, and loaded once.

*Not here*: what rests where (`index.resting`), batches and lines (`read.envelopes`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import attrs
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from mailismus.disk.worker import IWorker
from mailismus.journal.batch import BLOCK
from mailismus.journal.commit import GroupCommit
from mailismus.journal.segment import Segment
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Message, Shares
from mailismus.queue.providers.log.control.ledger import LogLedger
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.index.envelope import LogEnvelope
from mailismus.queue.providers.log.index.resting import AHEAD_S, MOST_LOADED, PIECE_BYTES, Piece, Resting, dues_of, runner_of
from mailismus.queue.providers.log.read.count_plan import PlannedSegment
from mailismus.queue.providers.log.read.damage import LogDamage, damages_of, has_doubtful_end
from mailismus.queue.providers.log.read.envelopes import BatchReader, FoundEnvelope, Stretch, envelopes_of
from mailismus.queue.providers.log.read.outline import Outline, outlines_of

MOST_NEAR = MOST_LOADED // 2
"""Entries in memory that are not out, beyond which only those are loaded that are due, and of senders that are not passed
over."""

MOST_PAUSE_S = 0.1
"""Seconds between two pieces that are learnt, at most: as long as the one before took, so that other work comes first."""

COUNTED_S = 0.05
"""Seconds for which the number of entries that are out is good enough."""

PIECES_A_TAKE = 8
"""Pieces that one take loads from at most."""

TAKE_S = 0.05
"""Seconds after which a take that has something reads no further piece."""

WAIT_S = 0.25
"""Seconds that a take waits at least for what is being learnt, while there is mail in another area alone."""


@attrs.frozen
class ReadPiece:
    """What was read of a piece. `end`: offset and sequence number of the batch where the reading ended; None: with the
    piece."""

    found: list[FoundEnvelope]
    bad: list[bytes]
    end: tuple[int, int] | None
    damages: list[tuple[int, int]]
    """Begin and end of what does not check."""
    is_doubtful: bool = False
    """Its last batch may be damaged."""


def read_piece(stretch: Stretch, segment: int, most_bytes: int, *, is_last_piece: bool = True) -> ReadPiece:
    """Read the unmarked envelopes of a stretch, about `most_bytes` of it. `is_last_piece`: the segment ends with it. Blocks.
    Raises OSError."""
    reader = BatchReader(stretch)
    found: list[FoundEnvelope] = []
    bad: list[bytes] = []
    while (batch := reader.next()) is not None:
        if batch.offset - stretch.begin >= most_bytes:
            return ReadPiece(found, bad, (batch.offset, batch.sequence), list(reader.skipped))
        found += envelopes_of(batch, segment, lambda _, record: not record.is_marked, bad)
    damages = damages_of(reader, stretch, is_last_piece=is_last_piece)
    return ReadPiece(found, bad, None, damages, is_last_piece and not damages and has_doubtful_end(reader, stretch))


@attrs.frozen
class OutlinedPiece:
    """Outlines of a piece. `end`: as in `ReadPiece`."""

    found: list[Outline]
    end: tuple[int, int] | None


def outline_piece(stretch: Stretch, segment: int, most_bytes: int, *, is_last_piece: bool = True) -> OutlinedPiece | None:
    """Read the outlines of a stretch, as `read_piece`. None: something does not check. Blocks. Raises OSError."""
    reader = BatchReader(stretch)
    found: list[Outline] = []
    try:
        while (batch := reader.next()) is not None:
            if reader.skipped:
                return None
            if batch.offset - stretch.begin >= most_bytes:
                return OutlinedPiece(found, (batch.offset, batch.sequence))
            found += outlines_of(batch, segment)
    except ValueError:
        return None
    if is_last_piece and (damages_of(reader, stretch, is_last_piece=True) or has_doubtful_end(reader, stretch)):
        return None
    return OutlinedPiece(found, None)


class _Visit:
    """A visit to all that rests, piece by piece. What is loaded meanwhile from pieces that it has not come to is looked at
    before."""

    def __init__(self, look: Callable[[FoundEnvelope, Piece], None], newest: int) -> None:
        """`newest`: sequence number of the newest batch. What is written later is new, or was looked at where it was."""
        self._look, self._newest = look, newest
        self._at = (0, -1)

    def pass_by(self, piece: Piece) -> None:
        """It has come to this piece."""
        self._at = (piece.segment, piece.begin)

    def look_at(self, one: FoundEnvelope, piece: Piece) -> None:
        """Look at an envelope of this piece."""
        if one.place.sequence <= self._newest:
            self._look(one, piece)

    def see(self, one: FoundEnvelope, piece: Piece) -> None:
        """An envelope of this piece is being loaded."""
        if (piece.segment, piece.begin) > self._at:
            self.look_at(one, piece)


class PieceLoading:
    """Loads what rests of one queue. `behind`: of each segment that a start found, a sequence number before its batches;
    `now`: UTC seconds; `lock`: held while a piece is read, and while marks are written; `ahead_s`: in place of `AHEAD_S`."""

    _log = Logger()

    def __init__(
        self,
        resting: Resting,
        ledger: LogLedger,
        segments: LogSegments,
        commits: GroupCommit,
        behind: Mapping[int, int],
        worker: IWorker,
        reactor: IReactorTime,
        now: Callable[[], float],
        lock: DeferredLock,
        damage: LogDamage,
        ahead_s: float | None = None,
    ) -> None:
        self._damage = damage
        self._resting, self._ledger, self._segments, self._behind = resting, ledger, segments, behind
        self._commits, self._worker, self._reactor, self._now, self._lock = commits, worker, reactor, now, lock
        self._ahead_s = ahead_s
        self._is_stopped = False
        self._is_learning = False
        self._counted_at_s, self._counted_out = -1.0, 0
        self._waiting: list[Deferred[None]] = []
        self._timer: IDelayedCall | None = None
        self._visits: list[_Visit] = []
        self._sleeping: list[Deferred[None]] = []
        """Takes that wait for news."""
        self._on_learnt_once: Callable[[], object] = _nothing
        self.pieces_read = 0
        self.bad = 0
        """Lines, records and stretches of bytes that did not check."""

    @property
    def has_room(self) -> bool:
        """Whether more entries may be loaded. Those that are out do not count: the caller of `take` bounds them."""
        return self._has_room(MOST_LOADED)

    def _has_room(self, most: int) -> bool:
        """Whether fewer than `most` entries wait in memory."""
        entry_count = self._ledger.working_set.entry_count
        return entry_count < most or entry_count - self._out_count() < most

    def _out_count(self) -> int:
        """How many entries are out, about: counted anew after `COUNTED_S`."""
        now_s = self._reactor.seconds()
        if not 0 <= now_s - self._counted_at_s < COUNTED_S:
            self._counted_at_s, self._counted_out = now_s, self._ledger.working_set.out_count()
        return self._counted_out

    # when due

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]] | list[Message]:
        """As `IQueue.take`."""
        working_set = self._ledger.working_set
        if self._resting.is_empty or not self.has_room:
            return working_set.take(area, limit, now, shares)
        if self._due_piece(area, now) is None:
            taken = working_set.take(area, limit, now, shares)
            if taken or not self._is_to_be_learnt:
                return taken
        return Deferred.fromCoroutine(self._take(area, limit, now, shares))

    async def _take(self, area: Area, limit: int, now: float, shares: Shares | None) -> list[Message]:
        began_s = self._reactor.seconds()
        while True:
            taken = await self._take_due(area, limit, now, shares)
            has_waited = self._reactor.seconds() - began_s >= WAIT_S
            if taken or not self._is_to_be_learnt or (has_waited and self._has_others(area)):
                return taken
            news: Deferred[None] = Deferred()
            self._sleeping.append(news)
            await news

    async def _take_due(self, area: Area, limit: int, now: float, shares: Shares | None) -> list[Message]:
        """Take what is in memory, and what is known to be due. Of pieces of which nothing is known, read those alone that
        the positions lead to."""
        working_set, began_s, pieces = self._ledger.working_set, self._reactor.seconds(), 0
        taken = working_set.take(area, limit, now, shares)
        limit -= sum(len(message.entries) for message in taken)
        while limit > 0 and not self._is_stopped and (piece := self._due_piece(area, now)) is not None and self.has_room:
            if taken and self._reactor.seconds() - began_s >= TAKE_S:
                break
            if not piece.is_known and await self._outline(piece):
                due_in = piece.due_in(area) if self._resting.has(piece) else None
                if due_in is not None and due_in <= now:
                    continue  # it is due
                if self._is_to_be_learnt and self._has_others(area):
                    break
            elif pieces == PIECES_A_TAKE or not await self._load(piece, now):
                break
            else:
                pieces += 1
            more = working_set.take(area, limit, now, shares)
            limit -= sum(len(message.entries) for message in more)
            taken += more
        if limit > 0:
            self._due_piece(area, now)  # one that is released is due when the caller asks again
        return taken

    def _due_piece(self, area: Area, now: float) -> Piece | None:
        """Return a piece to read. One that was held back for its senders' sake is due as soon as there is room again: one at
        a time, so that none is read in vain."""
        piece = self._resting.due_piece(area, now, is_learnt_anyway=self._is_to_be_learnt)
        if piece is None and self._resting.has_held(area) and self._has_room(MOST_NEAR // 2):
            return self._resting.release(area)
        return piece

    def _has_others(self, area: Area) -> bool:
        """Whether something of another area may be taken."""
        now, working_set = self._now(), self._ledger.working_set
        for other in Area:
            due_at = working_set.next_due(other)
            if other is not area and (
                working_set.has_ready(other) or (due_at is not None and due_at <= now) or self._resting.has_due(other, now)
            ):
                return True
        return False

    def tell_news(self) -> None:
        """Something may be taken now, or is known: takes that wait look again."""
        sleeping, self._sleeping = self._sleeping, []
        for news in sleeping:
            news.callback(None)

    async def _load(self, piece: Piece, now: float) -> bool:
        """Read a piece, and load what is due or nearly so. Return whether it could be read."""
        near = now + (AHEAD_S if self._ahead_s is None else self._ahead_s)
        is_passed_over = self._ledger.working_set.is_passed_over

        def is_wanted(one: FoundEnvelope, due_at: float) -> bool:
            is_held = due_at <= now and is_passed_over(one.entries[0].area, one.message.sender)
            most = MOST_NEAR if is_held or due_at > now else MOST_LOADED
            if due_at > near or not self._has_room(most):
                if is_held:
                    held.append(one)
                return False
            return True

        held: list[FoundEnvelope] = []
        return await self._read(piece, is_wanted, now, held=held)

    # when asked for

    async def load_messages(self, spool_ids: Collection[SpoolId]) -> None:
        """Load all that rests of these messages."""
        now = self._now()
        for piece in self._resting.all():
            if self._resting.has(piece):
                await self._read(piece, lambda one, _: one.message.spool_id in spool_ids, now)

    async def load_segments(self, numbers: Collection[int], most: int) -> None:
        """Load what rests in these segments, or has its content there, while there is room: about `most` envelopes."""
        loaded = 0

        def is_wanted(one: FoundEnvelope, _: float) -> bool:
            nonlocal loaded
            if not (_is_in(one, numbers) and self.has_room):
                return False
            loaded += 1
            return True

        for piece in self._resting.concerning(numbers) if numbers else ():
            if loaded >= most or self._is_stopped or not self.has_room:
                break
            if self._resting.has(piece):
                await self._read(piece, is_wanted, self._now())

    def start(self, on_learnt: Callable[[], object]) -> None:
        """Begin to learn what rests (`learn`), in a turn of its own. Call `on_learnt` when that has ended, at once if all is
        known."""
        if self._resting.is_known:
            on_learnt()
        else:
            self._on_learnt_once = on_learnt
            self._timer = self._reactor.callLater(0, self.learn)

    @property
    def _is_to_be_learnt(self) -> bool:
        """Whether what rests is being learnt, or soon will be."""
        return self._is_learning or (self._timer is not None and self._timer.active())

    def learn(self) -> Deferred[None]:
        """Read, beside all other work, every piece of which nothing is known. Fires when that has ended."""
        ended: Deferred[None] = Deferred()
        self._waiting.append(ended)
        if not self._is_learning:
            self._is_learning = True
            learnt = Deferred.fromCoroutine(self._learn_all())
            learnt.addErrback(lambda failure: self._log.failure("Reading the log failed", failure))
            learnt.addCallback(self._on_learnt)
        return ended

    def _on_learnt(self, _: object) -> None:
        self._is_learning = False
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            ended.callback(None)
        self.tell_news()
        on_learnt, self._on_learnt_once = self._on_learnt_once, _nothing
        on_learnt()

    def is_busy(self) -> bool:
        """Whether it is still being read."""
        return self._is_learning

    def stop(self) -> None:
        """Read no further."""
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self.tell_news()

    async def _learn_all(self) -> None:
        for piece in self._resting.all():
            if self._is_stopped:
                return
            if not piece.is_known and self._resting.has(piece):
                began_s = self._reactor.seconds()
                if not await self._outline(piece):
                    await self._read(piece, lambda one, due_at: False, self._now())
                self.tell_news()
                await self._pause(began_s)

    async def _pause(self, began_s: float) -> None:
        """Give way to other work, for as long as it took since then."""
        await deferLater(self._reactor, min(MOST_PAUSE_S, max(0.0, self._reactor.seconds() - began_s)), _nothing)

    async def visit_slowly(self, look: Callable[[FoundEnvelope, Piece], None]) -> bool:
        """As `visit`, at half speed."""
        return await self.visit(look, is_slow=True)

    async def visit(self, look: Callable[[FoundEnvelope, Piece], None], *, is_slow: bool = False) -> bool:
        """Have every resting envelope looked at, but those that are written meanwhile. Return whether all could be read.
        `is_slow`: at half speed, for work that nobody waits for."""
        is_whole = True
        visit = _Visit(look, self._commits.applied_sequence)
        self._visits.append(visit)
        try:
            for piece in self._resting.all():
                if not self._resting.has(piece):
                    continue
                began_s = self._reactor.seconds()

                def see(one: FoundEnvelope, _: float, piece: Piece = piece) -> bool:
                    visit.look_at(one, piece)
                    return False

                is_whole = await self._read(piece, see, self._now(), visit) and is_whole
                if is_slow:
                    await self._pause(began_s)
        finally:
            self._visits.remove(visit)
        return is_whole

    # counting in another process

    def planned(self) -> list[PlannedSegment]:
        """Return the segments in which something rests, or may."""
        segments, behind, applied = self._segments.in_use(), self._behind, self._commits.applied_sequence
        found = [(number, segments[number]) for number in self._resting.segments() if number in segments]
        return [
            PlannedSegment(os.path.basename(one.path), number, behind.get(number, 0), min(one.last_sequence, applied))
            for number, one in found
        ]

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

    # reading

    async def _read(
        self,
        piece: Piece,
        is_wanted: Callable[[FoundEnvelope, float], bool],
        now: float,
        visit: _Visit | None = None,
        held: Sequence[FoundEnvelope] = (),
    ) -> bool:
        """Read a piece, load the wanted envelopes, and note what is known of the rest. Return whether it could be read.
        `visit`: for which it is read. `held`: those that are not wanted because their senders were passed over."""
        await self._lock.acquire()
        try:
            if visit is not None:
                visit.pass_by(piece)
            return await self._read_locked(piece, is_wanted, now, held)
        finally:
            self._lock.release()

    async def _read_locked(
        self,
        piece: Piece,
        is_wanted: Callable[[FoundEnvelope, float], bool],
        now: float,
        held: Sequence[FoundEnvelope],
    ) -> bool:
        resting = self._resting
        segment = self._segments.in_use().get(piece.segment)
        if segment is None or not resting.has(piece):
            return True
        stretch = self._stretch(piece, segment)
        resting.begin_reading(piece)
        try:
            is_last = self._resting.end_of(piece) is None
            read = await self._worker.run(partial(read_piece, stretch, piece.segment, PIECE_BYTES, is_last_piece=is_last))
        except OSError as error:
            self._log.error("Segment {path} of the queue can't be read: {error}", path=segment.path, error=error)
            return False
        self.pieces_read += 1
        self.bad += len(read.bad) + len(read.damages)
        await self._damage.keep(segment.path, segment.file, read.damages, read.bad)
        if read.is_doubtful:
            self._damage.doubt(segment.path)
        if not resting.has(piece):
            return True
        garbage = {one.offset for one in self._ledger.unmarked if one.segment == piece.segment}
        dues: dict[int, float] = {}
        counts, rested = dict.fromkeys(Area, 0), dict.fromkeys(Area, 0)
        refers: set[int] = set()
        is_flushed = False
        for one in read.found:
            if one.offset in garbage or self._is_loaded(one):
                continue
            for entry in one.entries:
                rested[entry.area] += 1
            times = [piece.due_at(one.place.sequence, one.message, entry) for entry in one.entries]
            if is_wanted(one, min(times)):
                for visit in self._visits:
                    visit.see(one, piece)
                self._ledger.load(one, times, now, self._commits.applied_sequence, is_held=piece.is_known)
                continue
            if not piece.is_known:
                self._ledger.hold(one)
            for entry in one.entries:
                counts[entry.area] += 1
            if one.content is not None:
                refers.add(one.content.segment)
            is_flushed = is_flushed or min(times) <= 0.0
            if held and held[-1] is one:
                times = [max(due_at, now + piece.again_s) for due_at in times]
            for runner, due_at in dues_of(one.entries, times, one.interval).items():
                dues[runner] = min(dues.get(runner, due_at), due_at)
        if read.end is not None:
            resting.split(piece, *read.end, rested)
        resting.replace(piece, dues, counts, refers, is_flushed=is_flushed)
        piece.hold_back(is_again=bool(held))
        resting.hold(piece, {one.entries[0].area for one in held})
        return True

    async def _outline(self, piece: Piece) -> bool:
        """Learn what rests in a piece of which nothing is known. Return whether that could be done by outlines alone."""
        await self._lock.acquire()
        try:
            segment = self._segments.in_use().get(piece.segment)
            if segment is None or not self._resting.has(piece) or piece.is_known:
                return True
            if piece.flushes:
                return False
            stretch = self._stretch(piece, segment)
            self._resting.begin_reading(piece)
            try:
                is_last = self._resting.end_of(piece) is None
                read = await self._worker.run(
                    partial(outline_piece, stretch, piece.segment, PIECE_BYTES, is_last_piece=is_last)
                )
            except OSError:
                return False
            if read is None or piece.flushes:
                return False
            self.pieces_read += 1
            self._learn(piece, read)
            return True
        finally:
            self._lock.release()

    def _learn(self, piece: Piece, read: OutlinedPiece) -> None:
        if not self._resting.has(piece):
            return
        number = piece.segment
        garbage = {one.offset for one in self._ledger.unmarked if one.segment == number}
        messages = self._ledger.working_set.messages
        dues: dict[int, float] = {}
        counts = dict.fromkeys(Area, 0)
        refers: set[int] = set()
        for one in read.found:
            known = messages.get(one.spool_id)
            if one.offset in garbage:
                continue
            if known is not None and any(envelope.place == one.place for envelope in known.envelopes()):
                continue
            self._ledger.hold_outline(one, number)
            if one.content_segment:
                refers.add(one.content_segment)
            for area, count in one.counts.items():
                counts[area] += count
            for (area, attempts), stored_at in one.dues.items():
                due_at = piece.limited(one.place.sequence, area, attempts, stored_at)
                runner = runner_of(area, one.interval)
                dues[runner] = min(dues.get(runner, due_at), due_at)
        if read.end is not None:
            self._resting.split(piece, *read.end, counts)
        self._resting.replace(piece, dues, counts, refers, is_flushed=False)

    def _stretch(self, piece: Piece, segment: Segment) -> Stretch:
        assert segment.header is not None
        end, applied = self._resting.end_of(piece), self._commits.applied_sequence
        following = self._segments.in_use().get(piece.segment + 1)
        last = segment.last_sequence
        if following is not None and following.header is not None:
            last = following.header.first_sequence - 1
        return Stretch(
            segment.file,
            segment.header,
            max(BLOCK, piece.begin),
            end or segment.end or segment.size_bytes,
            self._behind.get(piece.segment, 0),
            min(last, applied),
            is_exact=following is not None and last <= applied,
        )

    def _is_loaded(self, one: FoundEnvelope) -> bool:
        known = self._ledger.working_set.messages.get(one.message.spool_id)
        return known is not None and any(_is_there(envelope, one) for envelope in known.envelopes())


def _nothing() -> None:
    """After a pause."""


def _is_in(one: FoundEnvelope, numbers: Collection[int]) -> bool:
    return one.segment in numbers or (one.content is not None and one.content.segment in numbers)


def _is_there(envelope: LogEnvelope, one: FoundEnvelope) -> bool:
    return envelope.place == one.place
