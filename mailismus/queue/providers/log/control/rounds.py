"""Rounds of marks: every few seconds, starts, marks, positions, free segments.

    starts of lasting work ride with the next batch
    marks of garbage -> sync -> positions, twice -> segments that nobody needs are free -> a turn of compaction

*Rules*: a mark is written when a record about its envelope is durable, in file order, to segments that are complete.
Positions are written after the sync of all marks that they vouch for. Segments are freed, and failed ones removed, after the
sync of positions that do not need them; they get the names of free ones then, and are begun anew only when these are
durable. A segment whose marks can't be synced has failed: what lives in it is moved.

Each rule, with the crash that it prevents: `docs/decisions/0026-the-log-is-the-queue`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.disk.interface import IDisk, close_read
from mailismus.disk.worker import IWorker
from mailismus.journal.commit import GroupCommit
from mailismus.journal.segment import Segment, free_name
from mailismus.queue.providers.log.commit.items import ILogOwner, StartItem
from mailismus.queue.providers.log.control.choices import DEFAULT_CHOICES, IPositionsFile, LogChoices
from mailismus.queue.providers.log.control.compaction import TURN_S, Compaction
from mailismus.queue.providers.log.control.ledger import LogLedger
from mailismus.queue.providers.log.control.moves import Moves
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.format.positions import MOST_IGNORED, MOST_RUNNERS, Positions
from mailismus.queue.providers.log.format.record import GARBAGE, WORKING, LogPlace, mark_offset
from mailismus.queue.providers.log.index.envelope import LogEnvelope
from mailismus.queue.providers.log.recovery.positions_file import PositionsFile

SUFFIX_BYTES = 48 << 20
"""Length of the working suffix beyond which envelopes that hang in it are written again, at its end."""


def write_marks(marks: Sequence[tuple[Segment, Sequence[tuple[int, bytes]]]]) -> dict[int, OSError]:
    """Write marks of records at these offsets, ascending, and sync each segment. Return the segments that failed. Blocks."""
    failed = {}
    for segment, offsets in marks:
        try:
            for offset, mark in offsets:
                segment.file.write_at(mark_offset(offset), [mark])
            segment.file.sync()
        except OSError as error:
            failed[segment.number] = error
    return failed


def remove_segments(disk: IDisk, directory: str, segments: Sequence[Segment]) -> None:
    """Remove failed segments, durably. Blocks. Raises OSError."""
    for segment in segments:
        if segment.has_name():
            disk.unlink(segment.path)
    disk.sync_directory(directory)
    for segment in segments:
        close_read(segment.file)


def name_free(disk: IDisk, directory: str, segments: Sequence[Segment]) -> None:
    """Give segments that are over the names of free ones, durably: what a crash leaves of the beginning of their next use is
    no damage. Blocks. Raises OSError."""
    for segment in segments:
        path = os.path.join(directory, free_name(segment.number))
        if path != segment.path and segment.has_name():
            segment.rename(disk, path)
    disk.sync_directory(directory)


class MarkRounds:
    """Rounds of one queue. `number`: of the positions found; `lock`: held while marks are written, and while pieces of the
    log are read."""

    _log = Logger()

    def __init__(
        self,
        ledger: LogLedger,
        segments: LogSegments,
        commits: GroupCommit,
        moves: Moves,
        compaction: Compaction,
        owner: ILogOwner,
        disk: IDisk,
        root: str,
        directory: str,
        worker: IWorker,
        reactor: IReactorTime,
        number: int,
        lock: DeferredLock,
        choices: LogChoices = DEFAULT_CHOICES,
    ) -> None:
        self._ledger, self._segments, self._commits, self._moves, self._owner = ledger, segments, commits, moves, owner
        self._compaction = compaction
        self._disk, self._directory, self._worker, self._reactor = disk, directory, worker, reactor
        self._choices = choices
        self._file: IPositionsFile = (choices.positions or PositionsFile)(disk, root)
        self._number = number
        self._lock = lock
        self._written: tuple[int, Mapping[int, LogPlace], tuple[int, ...]] | None = None
        self._timer: IDelayedCall | None = None
        self._is_stopped = False
        self._segment_count = 0
        self._asked = False
        self._running: Deferred[None] | None = None
        self._stopped: Deferred[None] | None = None
        self._went_well = True
        """The last round did."""
        self.rounds = 0
        """Rounds that ended well."""

    def is_busy(self) -> bool:
        """Whether a round is under way."""
        return self._running is not None

    def start(self) -> None:
        """Begin rounds."""
        self._segment_count = self._segments.count
        self._timer = self._reactor.callLater(self._choices.round_s, self._on_time)

    def stop(self) -> Deferred[None]:
        """Begin no further round. Fires when the one under way has ended."""
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        if self._running is None:
            return succeed(None)
        self._stopped = Deferred()
        return self._stopped

    def on_batch(self) -> None:
        """A batch is durable: a round begins soon when a segment is complete."""
        count = self._segments.count
        if count >= self._segment_count + self._choices.segments_a_round:
            self._segment_count = count
            if not self._is_stopped and not self._asked:
                self._asked = True
                self._reactor.callLater(0, self.run)

    def _on_time(self) -> None:
        if not self._is_stopped:
            self._timer = self._reactor.callLater(self._choices.round_s, self._on_time)
            self.run()

    def run(self) -> None:
        """Begin a round, unless one is under way."""
        self._asked = False
        if self._is_stopped or self._running is not None:
            return
        self._running = Deferred.fromCoroutine(self._run())
        self._running.addErrback(lambda failure: self._log.failure("A round of marks failed", failure))
        self._running.addCallback(self._on_ended)

    def _on_ended(self, _: None) -> None:
        self._running = None
        if self._compaction.is_active and self._went_well and not self._is_stopped and not self._asked:
            self._asked = True
            self._reactor.callLater(TURN_S, self.run)
        if self._stopped is not None:
            self._stopped.callback(None)

    async def _run(self) -> None:
        self._went_well = False
        try:
            self._ask_starts()
            self._move_hanging()
            await self._mark()
            await self._write_positions()
            await self._compaction.rescue()
            await self._compaction.turn()
        except OSError as error:
            self._log.warn("Positions of the queue can't be written: {error}", error=error)
            return
        self._segment_count = self._segments.count
        self._went_well = True
        self.rounds += 1

    def _ask_starts(self) -> None:
        """Ask for start records of envelopes that were out in the last round too."""
        lasting: list[LogEnvelope] = []
        for known in self._ledger.working_set.messages.values():
            out = known.out
            for envelope in known.envelopes():
                is_out = bool(out) and (known.envelope_of is None or any(known.envelope_of.get(n) is envelope for n in out))
                if is_out and envelope.was_out and envelope.wants_start:
                    envelope.is_start_asked = True
                    lasting.append(envelope)
                envelope.was_out = is_out
        if lasting:
            self._commits.ride(StartItem(self._owner, lasting))

    def _move_hanging(self) -> None:
        """Have envelopes written again whose records would let the suffix grow longer than `SUFFIX_BYTES`."""
        pins = [envelope.pin for envelope in self._ledger.working]
        oldest = min(pins, default=0)
        used = sorted(dict(self._segments.in_use()).items(), reverse=True)
        length, cut = 0, 0
        for _, segment in used:
            if length > SUFFIX_BYTES or segment.last_sequence < oldest:
                break
            length += segment.end or segment.size_bytes
            cut = segment.last_sequence + 1 if length > SUFFIX_BYTES else cut
        if cut > oldest > 0:
            self._moves.move_on([envelope for envelope in self._ledger.working if envelope.pin < cut])

    async def _mark(self) -> None:
        await self._lock.acquire()
        try:
            await self._mark_locked()
        finally:
            self._lock.release()

    async def _mark_locked(self) -> None:
        ledger, segments = self._ledger, self._segments
        garbage = [one for one in ledger.unmarked if segments.markable(one.segment)]
        working = [one for one in ledger.working if one.may_be_marked and segments.markable(one.segment)]
        lies = [(envelope, envelope.segment, envelope.offset) for envelope in working]
        offsets: dict[int, list[tuple[int, bytes]]] = {}
        for one in garbage:
            offsets.setdefault(one.segment, []).append((one.offset, GARBAGE))
        for _, segment, offset in lies:
            offsets.setdefault(segment, []).append((offset, WORKING))
        if not offsets:
            return
        in_use = segments.in_use()
        marks = [(in_use[number], sorted(offsets[number])) for number in sorted(offsets)]
        failed = await self._worker.run(lambda: write_marks(marks))  # and no piece is read meanwhile
        for number, error in failed.items():
            segments.fail(number)
            self._log.error("Marks can't be written to segment {number} of the queue: {error}", number=number, error=error)
        durable = {one for one in garbage if one.segment not in failed}
        ledger.drop_unmarked(durable)
        for envelope, segment, offset in lies:
            if segment not in failed and (envelope.segment, envelope.offset) == (segment, offset):
                envelope.mark()

    def _find_suffix(self, applied: int) -> tuple[int, list[Segment]]:
        """Return where the suffix begins, and the failed segments that nobody needs then: their garbage needs no records."""
        working = [envelope.pin for envelope in self._ledger.working]
        working += [item.pin for item in self._ledger.moves]  # it may be over before its copy is durable
        removable = [segment for segment in self._segments.unneeded() if segment.number in self._segments.failed]
        del removable[MOST_IGNORED:]
        while True:
            numbers = {segment.number for segment in removable}
            pins = [one.pin for one in self._ledger.unmarked if one.segment not in numbers]
            suffix = min([*pins, *working], default=applied + 1)
            before = [segment for segment in removable if segment.last_sequence < suffix]
            if len(before) == len(removable):
                return suffix, removable
            removable = before

    async def _write_positions(self) -> None:
        ledger, segments, applied = self._ledger, self._segments, self._commits.applied_sequence
        suffix, removable = self._find_suffix(applied)
        ignored = tuple(segment.number for segment in removable)
        waiting = [
            envelope.place
            for known in ledger.working_set.messages.values()
            for envelope in known.envelopes()
            if not envelope.is_recorded
        ]
        resting = ledger.resting.first_sequence()
        if resting is not None:
            waiting.append(LogPlace(resting, 0))
        runners = {
            runner: LogPlace(first, 0) for runner, first in sorted(ledger.resting.runners().items())[: MOST_RUNNERS - 1]
        }
        runners[0] = min(waiting, default=LogPlace(applied + 1, 0))
        if (suffix, runners, ignored) != self._written:
            positions = Positions(self._number + 1, suffix, runners, ignored)
            self._number += 1
            await self._worker.run(lambda: self._file.write(positions))
            self._written = suffix, runners, ignored
        if removable:
            await self._lock.acquire()
            try:
                await self._worker.run(lambda: remove_segments(self._disk, self._directory, removable))
                segments.forget(removable)
            finally:
                self._lock.release()
            ledger.drop_unmarked({one for one in ledger.unmarked if one.segment in ignored})
        segments.begin_suffix_at(suffix)
        over = segments.over(suffix, {one.segment for one in ledger.unmarked})  # as of now: of others the marks are durable
        if over:
            await self._worker.run(lambda: name_free(self._disk, self._directory, over))
            segments.free(over)
        segments.top_up()
