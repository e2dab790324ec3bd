"""Group commit: what came while the last batch ran goes with the next one; a batch has two barriers for all of it.

Settlements that end entries go apart, beside the batches (`write.ends`), for a kill repeats what was delivered and is not
written yet, a power cut what is not durable: they are written at once, and those that are written share the next barrier of
their own.

*Rules*: a new message asks for a batch at once. Settlements wait `COMPANY_S` for company, those that end entries
`ENDS_COMPANY_S`, cleanings `CLEAN_S`. A message is changed by a batch or by ends, never by both at a time; its ends go
first. A change that failed is tried again in a batch, at once, in new files, and then every `RETRY_S`, with whatever came
for its message meanwhile; a new message that failed is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.chunk.control.ledger import ChunkLedger, Part, PlannedChange
from mailismus.queue.providers.chunk.control.soon import Soon
from mailismus.queue.providers.chunk.control.workers import ChunkWorkers
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.write.batch import BatchWriter, ChunkBatch, NewMail
from mailismus.queue.providers.chunk.write.cleaning import Cleaning
from mailismus.queue.providers.chunk.write.ends import EndsWriter, WrittenEnds

COMPANY_S = 0.010
ENDS_COMPANY_S = 0.002
CLEAN_S = 0.100
RETRY_S = 3.0
FEW_HELD = 3
"""Messages whose files alone can't be written: they stop nobody else."""
MOST_MAILS = 200
"""New messages of one batch: each holds two open files until its barriers have returned."""
MOST_CHANGES = 200
"""Messages that one batch changes, and those of which entries are ended together."""
MOST_CLEANINGS = 1000


@attrs.define(eq=False)
class Mails:
    """New messages that are committed together: all of them, or none."""

    mails: Sequence[NewMail]
    on_end: Callable[[OSError | None], None]
    """Called when the batch has ended: None, they are durable."""


class BetweenBatches(Protocol):
    """What is done while no batch is under way, and nothing else."""

    def prepare(self) -> Callable[[], object]:
        """Return what blocks and is to be done now; called when the last batch has been told of. It raises no OSError."""

    def end(self, found: Any) -> None:
        """Take what that returned, before the next batch begins."""


class ChunkWork:
    """The batches of one queue. `on_batch` is called with the areas in which entries came, when all who wait for the batch
    have been told."""

    _log = Logger()

    def __init__(
        self,
        writer: BatchWriter,
        ends_writer: EndsWriter,
        ledger: ChunkLedger,
        workers: ChunkWorkers,
        reactor: IReactorTime,
        on_batch: Callable[[set[Area]], None],
    ) -> None:
        self._writer, self._ends_writer, self._ledger, self._workers = writer, ends_writer, ledger, workers
        self._reactor, self._on_batch = reactor, on_batch
        self._run_soon, self._end_soon = Soon(reactor), Soon(reactor)
        self._changing: set[SpoolId] = set()
        """Messages that the batch under way changes."""
        self._ending: set[SpoolId] = set()
        """Messages of which entries are being ended beside it."""
        self._written: list[tuple[WrittenEnds, list[PlannedChange]]] = []
        """Ends that wait for a barrier."""
        self._is_writing_ends = self._is_syncing_ends = False
        self._mails: list[Mails] = []
        self._ends: dict[SpoolId, list[Part]] = {}
        """Settlements that end entries, and go beside the batches."""
        self._parts: dict[SpoolId, list[Part]] = {}
        self._to_preprocess: dict[SpoolId, KnownChunk] = {}
        self._cleanings: list[Cleaning] = []
        self._between: list[BetweenBatches] = []
        self._held: dict[SpoolId, None] = {}
        """Messages whose change failed: they wait for `_retry`."""
        self._retry: IDelayedCall | None = None
        self._is_running = self._is_failing = False
        self._has_been_between = False
        """What waits for a batch goes first now: signals that come without a pause keep no mail out."""
        self.came: set[Area] = set()
        """Areas in which entries came with the batch that ends."""
        self.trouble: OSError | None = None
        """Why no new message could be committed, as far as is known: changes wait that have failed, and not those of a few
        messages alone: while only these fail, mail is taken, and each new message shows whether it can be. None: no
        reason."""
        self.bug: OSError | None = None
        """The queue's own code failed: only a restart helps."""
        self.batches = self.commits = self.failures = 0

    @property
    def is_idle(self) -> bool:
        """Whether no message, settlement or cleaning waits or is under way."""
        return self.is_settled and not self._cleanings

    @property
    def is_settled(self) -> bool:
        """Whether no message or settlement waits or is under way. Names that go may wait for the next start."""
        return not (self._is_under_way or self._mails or self._parts or self._to_preprocess)

    @property
    def is_waiting_for_retry(self) -> bool:
        """Whether nothing is under way but what failed and is tried again later."""
        return not (self._is_under_way or self._mails) and bool(self._held)

    @property
    def _is_under_way(self) -> bool:
        return self._is_running or bool(self._ends or self._ending)

    # ------------------------------------------------------------------ what comes

    def add_mails(self, mails: Mails) -> None:
        """Commit new messages."""
        self._mails.append(mails)
        self._run_in(0.0)

    def add_part(self, known: KnownChunk, part: Part) -> None:
        """Settle entries of a message."""
        spool_id = known.message.spool_id
        if part.only_ends and spool_id not in self._held:
            self._ends.setdefault(spool_id, []).append(part)
            self._end_in(ENDS_COMPANY_S)
        else:
            self._parts.setdefault(spool_id, []).append(part)
            self._run_in(COMPANY_S)

    def preprocess(self, known: KnownChunk) -> None:
        """Preprocess a message that is in the queue."""
        self._to_preprocess[known.message.spool_id] = known
        self._run_in(COMPANY_S)

    def clean(self, cleanings: Sequence[Cleaning]) -> None:
        """Remove names."""
        self._cleanings += cleanings
        if cleanings:
            self._run_in(CLEAN_S)

    def add_between(self, one: BetweenBatches) -> None:
        """Do this before the next batch; once, however often it is added meanwhile."""
        if one not in self._between:
            self._between.append(one)
        self._run_in(0.0)

    def cleaning_numbers(self) -> set[int]:
        """Numbers of which names are to go, while no batch is under way."""
        return {one.number for one in self._cleanings}

    def tell_soon(self) -> None:
        """Call `on_batch` in a turn of its own: somebody waits for nothing."""
        self._reactor.callLater(0, self._on_batch, set())

    def hurry(self) -> None:
        """Begin what waits; what failed and is to be tried again at some time stays."""
        if self._retry is not None and not self._held:
            self._retry.cancel()
            self._retry = None
        if self._ends:
            self._end_in(0.0)
        if not self.is_idle:
            self._run_in(0.0)

    # ------------------------------------------------------------------ ends

    def _end_in(self, delay_s: float) -> None:
        if not self._is_writing_ends:
            self._end_soon.within(delay_s, self._end)

    def _end(self) -> None:
        planned, busy = [], self._changing | self._ending
        for spool_id in [one for one in self._ends if one not in busy][: MOST_CHANGES - len(self._ending)]:
            parts = self._ends.pop(spool_id)
            found = self._plan_one(spool_id, parts)
            if found is not None and found.change.only_ends:
                planned.append(found)
            elif found is not None:
                self._parts[spool_id] = [*self._parts.get(spool_id, ()), *parts]
                self._run_in(0.0)
        if planned:
            self._ending |= _spool_ids(planned)
            self._is_writing_ends = True
            writing = self._workers.ends.run(partial(self._ends_writer.write, [one.change for one in planned]))
            writing.addCallback(self._wrote_ends, planned).addErrback(self.break_down)

    def _wrote_ends(self, written: WrittenEnds, planned: list[PlannedChange]) -> None:
        self._is_writing_ends = False
        self._written.append((written, planned))
        if not self._is_syncing_ends:
            self._sync_ends()
        if self._ends:
            self._end_in(ENDS_COMPANY_S)

    def _sync_ends(self) -> None:
        written, self._written = self._written, []
        self._is_syncing_ends = True
        syncing = self._workers.ends.run(partial(self._ends_writer.make_durable, [one for one, _ in written]))
        syncing.addCallback(self._ended_ends, [one for _, planned in written for one in planned])
        syncing.addErrback(self.break_down)

    def _ended_ends(self, batch: ChunkBatch, planned: Sequence[PlannedChange]) -> None:
        self._is_syncing_ends = False
        self._ending -= _spool_ids(planned)
        if self._written:
            self._sync_ends()
        self._take_ended(batch, (), planned)

    # ------------------------------------------------------------------ batches

    def _run_in(self, delay_s: float) -> None:
        if not self._is_running:
            self._run_soon.within(delay_s, self._run)

    def _run(self) -> None:
        if self._between and not (self._has_been_between and (self._mails or self._parts)):
            self._is_running = self._has_been_between = True
            one = self._between.pop(0)
            self._workers.batches.run(one.prepare()).addCallback(self._ended_between, one).addErrback(self.break_down)
            return
        self._has_been_between = False
        mails, self._mails = self._mails[:MOST_MAILS], self._mails[MOST_MAILS:]
        planned = self._plan()
        cleanings: list[Cleaning] = []
        if self._retry is None:
            cleanings, self._cleanings = self._cleanings[:MOST_CLEANINGS], self._cleanings[MOST_CLEANINGS:]
        if not (mails or planned or cleanings):
            if self._between:
                self._run_in(0.0)
            return
        self._changing = _spool_ids(planned)
        batch = ChunkBatch([mail for one in mails for mail in one.mails], [one.change for one in planned], cleanings)
        self._is_running = True
        running = self._workers.batches.run(partial(self._writer.run, batch))
        running.addCallback(self._ended, mails, planned).addErrback(self.break_down)

    def _ended_between(self, found: object, one: BetweenBatches) -> None:
        self._is_running = False
        self.came = set()
        one.end(found)
        self._go_on()
        self._on_batch(self.came)

    def _plan(self) -> list[PlannedChange]:
        planned: list[PlannedChange] = []
        for spool_id in [one for one in self._parts if self._may_change(one)][:MOST_CHANGES]:
            self._to_preprocess.pop(spool_id, None)
            found = self._plan_one(spool_id, self._parts.pop(spool_id))
            if found is not None:
                planned.append(found)
        for spool_id, known in list(self._to_preprocess.items())[: MOST_CHANGES - len(planned)]:
            if not self._may_change(spool_id):
                continue
            del self._to_preprocess[spool_id]
            if self._ledger.index.messages.get(spool_id) is known and not known.is_preprocessed:
                planned.append(self._ledger.plan_preprocessing(known))
        return planned

    def _may_change(self, spool_id: SpoolId) -> bool:
        """Whether the next batch may change this message."""
        return not (spool_id in self._held or spool_id in self._ends or spool_id in self._ending)

    def _plan_one(self, spool_id: SpoolId, parts: Sequence[Part]) -> PlannedChange | None:
        """The change that these make; None: all of them are of what is gone, and have ended."""
        known = self._ledger.index.messages.get(spool_id)
        found = self._ledger.plan(known, parts) if known is not None else None
        if found is None:
            for part in parts:
                part.on_end(None)
            self.tell_soon()
        return found

    def _ended(self, batch: ChunkBatch, mails: Sequence[Mails], planned: Sequence[PlannedChange]) -> None:
        self._is_running = False
        self._changing = set()
        self._take_ended(batch, mails, planned)

    def _take_ended(self, batch: ChunkBatch, mails: Sequence[Mails], planned: Sequence[PlannedChange]) -> None:
        self.batches += 1
        self.came = set()
        for one in mails:
            self._end_mails(one)
        failed = {id(one.change): one for one in batch.failed}
        for change in planned:
            failure = failed.get(id(change.change))
            if failure is None:
                self.came |= self._ledger.apply(change)
                continue
            self._ledger.fail(failure)
            spool_id = change.change.known.message.spool_id
            self._held[spool_id] = None
            if change.parts:
                self._parts[spool_id] = [*change.parts, *self._parts.get(spool_id, ())]
            else:
                self._to_preprocess[spool_id] = change.change.known
        self._cleanings += batch.left
        self._note_trouble(batch)
        self._go_on()
        self._on_batch(self.came)

    def _go_on(self) -> None:
        if self._ends:
            self._end_in(0.0)
        if self._mails or self._between:
            self._run_in(0.0)
        elif self._parts or self._to_preprocess:
            self._run_in(COMPANY_S)
        elif self._cleanings:
            self._run_in(CLEAN_S)

    def _end_mails(self, mails: Mails) -> None:
        error = next((mail.error for mail in mails.mails if mail.error is not None), None)
        if error is None:
            self.commits += 1
        mails.on_end(error)

    def _note_trouble(self, batch: ChunkBatch) -> None:
        if batch.error is None:
            if self._is_failing and not self._held and self._retry is None:
                self.trouble, self._is_failing = None, False
                self._log.info("The queue's files can be written again.")
            return
        self.failures += 1
        is_again, self._is_failing = self._is_failing, True
        if not is_again:
            self._log.error("The queue's files can't be written: {error}", error=batch.error)
        if self._held:
            is_general = len(self._held) > FEW_HELD or (batch.has_barrier_failed and bool(batch.mails))
            self.trouble = batch.error if is_general else None
        if self._retry is None and (self._held or self._cleanings):
            delay_s = COMPANY_S if self._held and not is_again else RETRY_S
            self._retry = self._reactor.callLater(delay_s, self._try_again)

    def _try_again(self) -> None:
        self._retry = self.trouble = None
        self._held.clear()
        self._run_in(0.0)

    def break_down(self, failure: Failure) -> None:
        """State in memory can't be trusted any more; that on disk can."""
        self.bug = OSError(5, "internal error; the server must be started again")
        self._log.failure("The queue's own code failed; no mail is accepted until the server is started again.", failure)


def _spool_ids(planned: Sequence[PlannedChange]) -> set[SpoolId]:
    return {one.change.known.message.spool_id for one in planned}
