"""Checkpoints: live entries move from the journal to cluster files, and the journal before the horizon is freed.

1. The horizon is chosen: the last batch that is durable *and* applied to the indexes. All live entries of the memtable
   are to move. (A batch that is durable and not applied yet lies behind the horizon: its entries are not moved, the lines
   that it settled are not marked.)
2. Contents, lines, marks and unlinks are written, and made durable by one barrier (`files`).
3. The record goes through the journal, the entries move, segments are freed (`sealing`).

An entry that is settled while its line is moved is *late*: its place goes into the journal before the record, and is marked
by the next checkpoint. A settlement that goes into the journal behind the record names its place itself.

A checkpoint whose file work fails, or whose record's batch fails, is abandoned: its entries stay in the memtable, and the
next one has another number and writes everything anew.

Source: `docs/formats/cluster`; the rules are explored state by state in the queue's model.
"""

from __future__ import annotations

from collections.abc import Collection

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.journal.commit import GroupCommit
from mailismus.mail.ids import EntryKey
from mailismus.queue.providers.clustered.checkpoint.files import CheckpointFiles
from mailismus.queue.providers.clustered.checkpoint.policy import CheckpointPolicy
from mailismus.queue.providers.clustered.checkpoint.sealing import CheckpointCounts, CheckpointSealing
from mailismus.queue.providers.clustered.checkpoint.segments import JournalSegments
from mailismus.queue.providers.clustered.checkpoint.write import Unreadable
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint, QueueState

TICK_S = 0.25
"""Seconds between two checks whether a checkpoint is due."""


class CheckpointRunner:
    """Makes checkpoints when they are due, one at a time."""

    _log = Logger()

    def __init__(
        self,
        state: QueueState,
        policy: CheckpointPolicy,
        files: CheckpointFiles,
        sealing: CheckpointSealing,
        segments: JournalSegments,
        commit: GroupCommit,
        asked: Collection[EntryKey],
        reactor: IReactorTime,
    ) -> None:
        """`asked`: entries whose settlement is in the journal and not durable yet."""
        self._state = state
        self._policy = policy
        self.files = files
        self.sealing = sealing
        self._segments = segments
        self._commit = commit
        self._asked = asked
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self._waiting: list[Deferred[None]] = []
        """Those who wait for the end of a checkpoint."""
        self._is_stopped = False

    @property
    def pending(self) -> PendingCheckpoint | None:
        """The checkpoint under way; None: there is none."""
        return self._state.pending

    @property
    def counts(self) -> CheckpointCounts:
        """Checkpoints so far."""
        return self.sealing.counts

    @property
    def is_broken(self) -> bool:
        """A durable checkpoint could not be applied: no other one begins."""
        return self.sealing.is_broken

    def start(self) -> None:
        """Begin to check whether one is due."""
        self._tick()

    def stop(self) -> None:
        """Begin no checkpoint any more, but by `run`."""
        self.hurry()
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def hurry(self) -> None:
        """Apply the rest of a durable checkpoint now."""
        self.sealing.hurry()

    def on_batch(self) -> None:
        """A batch became durable."""
        self._segments.top_up()
        state, items = self._state, self._commit.items
        # The clusters are gone through only where no item is new: a batch must not cost more the more clusters there are.
        if not self._policy.has_new_items(items) and not state.cluster_index.has_marks():
            return  # the batch that carried the last checkpoint's own record
        self._policy.note_change(state.now())
        if state.pending is None and self._policy.is_over_limit(
            state.memtable.entry_count, items, self._segments.used_bytes
        ):
            self._begin_if_allowed()

    def _tick(self) -> None:
        if self._is_stopped:
            return
        self._timer = self._reactor.callLater(TICK_S, self._tick)
        self._segments.top_up()
        state = self._state
        if state.pending is not None:
            return
        if self._segments.has_failed or self._policy.is_due(state.now(), state.memtable.oldest_since()):
            self._begin_if_allowed()

    def _begin_if_allowed(self) -> None:
        if self._policy.may_begin(self._state.now()) and self._commit.trouble is None and not self._is_stopped:
            self.run()

    def run(self) -> Deferred[None]:
        """Make one checkpoint now, or wait for the one under way; fires when it is over: durable and applied, abandoned, or
        not begun. Never fails."""
        done: Deferred[None] = Deferred()
        self._waiting.append(done)
        if self._state.pending is not None and not self.is_broken:
            return done
        # In trouble live messages are rewritten behind this horizon: they would be there twice.
        if self.is_broken or self._commit.trouble is not None:
            self._tell()
            return done
        pending = self._state.begin_checkpoint(self._commit.applied_sequence)
        Deferred.fromCoroutine(self._run(pending)).addErrback(self._on_broken, pending)
        return done

    def run_over_all(self) -> Deferred[None]:
        """Fires when everything that is in the memtable now has moved (or a checkpoint was abandoned)."""
        done: Deferred[None] = Deferred()
        # In a turn of its own: this one may be in the middle of applying a batch. What came after the checkpoint under way
        # began needs another; all that wait share it.
        self._reactor.callLater(0, self._run_for, done, 1 if self._state.pending is None else 2)
        return done

    def _run_for(self, done: Deferred[None], rounds: int) -> None:
        self.run().addCallback(lambda _: self._run_for(done, rounds - 1) if rounds > 1 else done.callback(None))

    async def _run(self, pending: PendingCheckpoint) -> None:
        began_s, interruptions = self._reactor.seconds(), self._commit.interruptions
        try:
            written = await self.files.work(pending, self._asked)
        except OSError as error:
            if isinstance(error, Unreadable):
                self._segments.note_unread(error.segment)
            self._log.warn("A checkpoint came to nothing, its entries stay in the journal: {error}", error=error)
            self._abandon(pending)
            return
        if self._commit.interruptions != interruptions:
            # Live messages were rewritten behind the horizon, or a settlement failed: an entry would be there twice, or be
            # lost. Or directories were away meanwhile.
            self._abandon(pending)
            return
        await self.sealing.seal(pending, written, began_s)
        self._tell()

    def _on_broken(self, failure: Failure, pending: PendingCheckpoint) -> None:
        self._log.failure("A checkpoint failed unexpectedly", failure)
        self._abandon(pending)

    def _abandon(self, pending: PendingCheckpoint) -> None:
        if self._state.pending is pending:
            self.sealing.abandon(pending)
            self._tell()

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for deferred in waiting:
            deferred.callback(None)
