"""Group commit: many messages share one barrier.

While one batch is being made durable, the next one gathers; there is no timer for messages. A lone client pays one barrier.
Items without a waiting client (settlements) are delayed until a message takes them along, or for `company_s` after the first
of them: so a message does not wait for a barrier of theirs.

    gathering --batch--> journal thread --barrier--> durable(), in the order appended
                              \\--failed--> the segment is sick; failed() for what may fail, the rest is said again
                              \\--missing-> nothing was written; failed() for what may fail, the rest waits

*Rules*: no item of a batch is acknowledged, taken or released before its barrier has returned. After a failed barrier no
item that may fail is accepted until all other items are durable in a new segment. None is accepted while the journal's
directory or lock has lost its name: bytes written there would be durable and yet lost.

All of this runs in the reactor's thread, but `JournalWriter.append` and `check`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.presence import Missing
from mailismus.disk.worker import IWorker
from mailismus.journal.writer import Claim, JournalWriter, NoSegment, Written

COMPANY_S = 0.010
"""Seconds that settlements are delayed at most: bounds the deliveries that a crash may repeat."""

RETRY_S = 3.0
"""Seconds between two attempts after a failure."""

SEGMENT_S = 0.020
"""Seconds between two attempts of a batch that waits for a free segment."""

LARGEST_GATHERED = 4 << 20
"""Bytes gathered into one batch at most (and no more than half a segment; a longer item goes alone), so that one client's
barrier does not carry everybody's bytes."""


class IItem(Protocol):
    """One or more records that are written as a whole."""

    buffers: list[bytes]
    size_bytes: int
    may_fail: bool
    """A client waits, which can be refused. An item that may not fail is rewritten until it is durable."""

    def durable(self, segment: int, offset: int) -> None:
        """Its barrier has returned. It begins at this offset of this segment's file."""

    def failed(self, error: OSError) -> None:
        """It is not durable, and will not be made so; after a crash it may be found all the same. Only if it `may_fail`."""


class GroupCommit:
    """Gathers items into batches for the journal's thread, and reports the result to each item."""

    _log = Logger()

    def __init__(
        self,
        writer: JournalWriter,
        worker: IWorker,
        reactor: IReactorTime,
        most_records_size: int,
        on_batch: Callable[[], None],
        on_sick: Callable[[], Sequence[IItem]],
        company_s: float = COMPANY_S,
    ) -> None:
        """`on_batch` is called after each durable batch; `on_sick` when a barrier failed: it returns the items that rewrite
        the live records of the failed segment. They precede the settlements that are kept. `company_s`: as `COMPANY_S`."""
        self._writer = writer
        self._worker = worker
        self._reactor = reactor
        self._most = most_records_size
        self._gather = min(most_records_size // 2, LARGEST_GATHERED)
        self._on_batch = on_batch
        self._on_sick = on_sick
        self._company_s = company_s
        self._waiting: deque[IItem] = deque()
        self._riding: list[IItem] = []
        """Items that go with the next batch, and never ask for one."""
        self._urgent = 0
        """Number of waiting items that may fail."""
        self._is_hurried = False
        self._waiting_since_s = 0.0
        """Arrival of the first waiting item, if none is urgent (the reactor's clock)."""
        self._is_writing = False
        self._timer: IDelayedCall | None = None
        self._timer_is_soon = False
        self._to_recover = 0
        self.trouble: OSError | None = None
        """Why no item that may fail is accepted now: the first of the next four. None: all is well."""
        self._bug: OSError | None = None
        """A bug: only a restart ends this trouble."""
        self._failure: OSError | None = None
        """A batch failed, and not all items that were kept are durable yet."""
        self.missing: Missing | None = None
        """The last check did not find the journal under its name."""
        self._barred: OSError | None = None
        """Trouble reported by other components."""
        self._is_looking = False
        self.applied_sequence = writer.sequence
        """Of the last batch whose result all items know. The journal's thread may be ahead: `writer.sequence`."""
        self.written = Written(0, 0, writer.sequence)
        """Where the batch lies whose items are told now, or were last."""
        self.batches = 0
        """Batches made durable."""
        self.items = 0
        """Items made durable."""
        self.failures = 0
        """Batches that failed."""
        self.interruptions = 0
        """How often a batch failed, the journal was missing, or another component reported trouble."""
        self.waiting_bytes = 0

    @property
    def is_idle(self) -> bool:
        """No item waits and no batch is being written."""
        return not self._waiting and not self._is_writing

    @property
    def pending_batches(self) -> int:
        """Barriers that run, and barriers that the waiting items will need."""
        return self._is_writing + -(-self.waiting_bytes // self._gather)

    def refuse_waiting(self, error: OSError) -> int:
        """Fail the waiting items that may fail; returns their number. Items of the running barrier go on: they may be
        durable."""
        refused = [item for item in self._waiting if item.may_fail]
        self._waiting = deque(item for item in self._waiting if not item.may_fail)
        self._urgent = 0
        self.waiting_bytes = sum(item.size_bytes for item in self._waiting)
        self._refuse(refused, error)
        return len(refused)

    def _refuse(self, refused: Sequence[IItem], error: OSError) -> None:
        for item in refused:
            try:
                item.failed(error)
            except Exception:
                self.break_down(Failure())  # type: ignore[no-untyped-call]  # Twisted's

    def append(self, item: IItem) -> None:
        """Write the item with the next batch. During trouble an item that may fail fails at once."""
        if item.may_fail and (self.trouble is not None or item.size_bytes > self._most):
            item.failed(self.trouble or OSError(90, "longer than a journal segment holds"))
            return
        waiting = self._waiting
        if item.may_fail:
            self._urgent += 1
            if not self._is_writing:
                self._write_soon()
        else:
            if not waiting:
                self._waiting_since_s = self._reactor.seconds()
            if not self._is_writing and self._timer is None:
                self._timer = self._reactor.callLater(self._company_s, self._write)
        waiting.append(item)
        self.waiting_bytes += item.size_bytes

    def ride(self, item: IItem) -> None:
        """Write the item, which may not fail, behind the others of the next batch, whenever that comes. Nothing is lost with
        it."""
        self._riding.append(item)

    def bar(self, error: OSError | None) -> None:
        """Report trouble of another component (None: it is over): no item that may fail is accepted meanwhile."""
        is_new = error is not None and self._barred is None
        self._barred = error
        self._judge()
        if error is not None and is_new:
            self.interruptions += 1
            self.refuse_waiting(error)

    def look_for_files(self) -> None:
        """Have the next batch check the names of the journal's files; without a batch under way, check now. To be called
        once a second."""
        self._writer.is_check_due = True
        if not self._is_writing and not self._is_looking:
            self._is_looking = True
            self._worker.run(self._writer.check).addCallbacks(self._on_found, self._on_not_found).addErrback(self.break_down)

    def _on_found(self, _: None) -> None:
        self._is_looking = False
        if self.missing is not None:
            self.missing = None
            self._judge()
            self._write()

    def _on_not_found(self, failure: Failure) -> None:
        self._is_looking = False
        if not self._is_writing:  # else the batch that came meanwhile checks too
            self._not_written(failure, [])

    def _judge(self) -> None:
        self.trouble = self._bug or self._failure or self.missing or self._barred

    def hurry(self) -> None:
        """Write the waiting items without delay."""
        if self._waiting:
            self._is_hurried = True
            if not self._is_writing:
                self._write_soon()

    def _write_soon(self) -> None:
        """Write after this turn of the reactor, with all items of the turn."""
        if not self._timer_is_soon:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._reactor.callLater(0, self._write)
            self._timer_is_soon = True

    def _write(self) -> None:
        if self._timer is not None:
            if self._timer.active():
                self._timer.cancel()
            self._timer = None
        self._timer_is_soon = False
        if self._is_writing or not self._waiting:
            return
        batch: list[IItem] = []
        buffers: list[bytes] = []
        size = 0
        claim = Claim.ANY
        waiting = self._waiting
        if self._riding:
            waiting.extend(self._riding)
            self.waiting_bytes += sum(item.size_bytes for item in self._riding)
            self._riding.clear()
        while waiting and (not batch or size + waiting[0].size_bytes <= self._gather):
            item = waiting.popleft()
            batch.append(item)
            buffers += item.buffers
            size += item.size_bytes
            if item.may_fail:
                claim = Claim.BEYOND_RESERVE
                self._urgent -= 1
        self._is_hurried = self._is_hurried and bool(waiting)
        self.waiting_bytes -= size
        self._is_writing = True
        self._worker.run(partial(self._writer.append, buffers, size, claim)).addBoth(self._ended, batch)

    def _ended(self, result: Written | Failure, batch: list[IItem]) -> None:
        """A batch was written, or not. One callback: each costs as much as a message's share of a batch."""
        try:
            if isinstance(result, Failure):
                self._not_written(result, batch)
            else:
                self._written(result, batch)
        except Exception:
            self.break_down(Failure())  # type: ignore[no-untyped-call]  # Twisted's

    def _written(self, written: Written, batch: list[IItem]) -> None:
        self._is_writing = False
        self.batches += 1
        self.items += len(batch)
        if self._to_recover:
            self._to_recover = max(0, self._to_recover - len(batch))
            if not self._to_recover:
                self._failure = None
                self._judge()
                self._log.info("The journal goes on in a fresh segment.")
        if self._waiting:
            self._go_on()  # the disk works while replies are sent
        self.written = written
        segment, offset = written.segment, written.offset
        for item in batch:
            try:
                item.durable(segment, offset)
            except Exception:
                self.break_down(Failure())  # type: ignore[no-untyped-call]  # Twisted's; the others hear of it all the same
            offset += item.size_bytes
        self.applied_sequence = written.sequence
        self._on_batch()

    def _go_on(self) -> None:
        """Continue with the waiting items after a barrier."""
        left_s = self._company_s - (self._reactor.seconds() - self._waiting_since_s)
        if self._urgent or self._is_hurried or self._to_recover or not 0 < left_s <= self._company_s:
            self._write()
        else:
            self._timer = self._reactor.callLater(left_s, self._write)

    def _not_written(self, failure: Failure, batch: list[IItem]) -> None:
        error = failure.value
        if not isinstance(error, OSError):
            self.break_down(failure)
            error = OSError(5, "internal error")
        self._is_writing = False
        if isinstance(error, NoSegment) and error.is_coming:
            self._wait_for_segment(batch)
            return
        first_time, was_missing = self.trouble is None, self.missing is not None
        if isinstance(error, Missing):
            self.interruptions += not was_missing
            self.missing = error
        else:
            self.failures += 1
            self.interruptions += 1
            self._log.error("The journal can't be written: {error}", error=str(error))
            self._failure = error
        kept = [item for item in (*batch, *self._waiting) if not item.may_fail]
        refused = [item for item in (*batch, *self._waiting) if item.may_fail]
        self._waiting = deque(kept)
        self._urgent = 0
        self._judge()
        self._refuse(refused, error)
        if not isinstance(error, NoSegment | Missing):
            self._writer.turn_over()
            self._waiting.extendleft(reversed(self._on_sick()))
        self.waiting_bytes = sum(item.size_bytes for item in self._waiting)
        if self._failure is not None:
            self._to_recover = len(self._waiting)
        if not self._to_recover:
            self._failure = None
            self._judge()
        has_timer = self._timer is not None and self._timer.active()
        if not self._waiting or (has_timer and was_missing):
            return
        if self._timer is not None and has_timer:
            self._timer.cancel()
        # The kept items may take a new segment, or one of the reserve.
        self._timer = self._reactor.callLater(0 if first_time else RETRY_S, self._write)
        self._timer_is_soon = True

    def _wait_for_segment(self, batch: list[IItem]) -> None:
        """Try the batch again later: segments are being used faster than created, which is no reason to refuse mail."""
        self._waiting.extendleft(reversed(batch))
        self._urgent += sum(item.may_fail for item in batch)
        self.waiting_bytes += sum(item.size_bytes for item in batch)
        self._timer = self._reactor.callLater(SEGMENT_S, self._write)
        self._timer_is_soon = True

    def break_down(self, failure: Failure) -> None:
        """Handle a bug: state in memory can't be trusted (state on disk can), so no more mail is accepted."""
        self._bug = OSError(5, "internal error; the server must be started again")
        self._judge()
        self._log.failure("The queue's own code failed; no mail is accepted until the server is started again.", failure)
