"""Sealing: the commit record of a checkpoint, and what follows when it is durable, or not.

1. Places of late entries, and of finished lines that could not be marked, go through the journal.
2. The record `checkpoint K` goes through the journal. **This is the commit instant**: until it is durable files numbered K
   and bytes beyond an open cluster's committed length do not count; from then on the journal before the horizon does not.
3. Its entries move from the memtable to the cluster index, slice by slice (`apply`).
4. Segments before the horizon are freed.

A checkpoint whose record's batch fails is abandoned: its entries stay in the memtable.
"""

from __future__ import annotations

from functools import partial

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.journal.commit import GroupCommit
from mailismus.journal.spool_ids import Naming
from mailismus.queue.providers.clustered.checkpoint.apply import PAUSE_S, CheckpointApply, EntryMover
from mailismus.queue.providers.clustered.checkpoint.files import CheckpointFiles, WrittenFiles
from mailismus.queue.providers.clustered.checkpoint.policy import CheckpointPolicy
from mailismus.queue.providers.clustered.checkpoint.segments import JournalSegments
from mailismus.queue.providers.clustered.commit.items import CheckpointItem, PlacesItem
from mailismus.queue.providers.clustered.format.record import Checkpoint, checkpoint_record
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint, QueueState


@attrs.define
class CheckpointCounts:
    """Checkpoints of one queue in numbers."""

    made: int = 0
    """Checkpoints that became durable."""
    abandoned: int = 0
    moved: int = 0
    """Entries of those made."""
    took_s: float = 0.0
    """How long those made took, together."""
    made_at: float | None = None
    """When the newest became durable, UTC seconds."""

    def add_made(self, moved: int, took_s: float, now: float) -> None:
        """One more is durable."""
        self.made += 1
        self.moved += moved
        self.took_s += took_s
        self.made_at = now

    def add_abandoned(self) -> None:
        """One more was abandoned."""
        self.abandoned += 1


class CheckpointSealing:
    """Seals one checkpoint after the other, and applies it."""

    _log = Logger()

    def __init__(
        self,
        state: QueueState,
        files: CheckpointFiles,
        segments: JournalSegments,
        policy: CheckpointPolicy,
        mover: EntryMover,
        commit: GroupCommit,
        naming: Naming,
        reactor: IReactorTime,
    ) -> None:
        self._state = state
        self._files = files
        self._segments = segments
        self._policy = policy
        self._mover = mover
        self._commit = commit
        self._naming = naming
        self._reactor = reactor
        self._apply: CheckpointApply | None = None
        """Of the checkpoint under way: its record is durable."""
        self._over: Deferred[None] = Deferred()
        """Of the checkpoint that was sealed last."""
        self.is_broken = False
        """A durable checkpoint could not be applied, a fault of our own: no other one begins."""
        self.counts = CheckpointCounts()

    def seal(self, pending: PendingCheckpoint, written: WrittenFiles, began_s: float) -> Deferred[None]:
        """Write its record; fires when the checkpoint is over: applied, abandoned, broken. Never fails. `began_s`: by the
        reactor's clock."""
        self._over = Deferred()
        self._append_record(pending, written, began_s)
        return self._over

    def _append_record(self, pending: PendingCheckpoint, written: WrittenFiles, began_s: float) -> None:
        pending.mark_sealed()
        places = [(queue_id, pending.places[queue_id]) for queue_id in sorted(pending.late)]
        for item in PlacesItem.of([*places, *written.kept.places()]):
            self._commit.append(item)
        lengths = self._files.lengths(written)
        record = checkpoint_record(Checkpoint(pending.horizon, self._naming.epoch, pending.number, lengths))
        done = partial(self._committed, pending, written, began_s)
        self._commit.append(CheckpointItem(record, done, partial(self.abandon, pending)))

    def _committed(self, pending: PendingCheckpoint, written: WrittenFiles, began_s: float) -> None:
        self._files.note_durable(written)
        self._apply = CheckpointApply(pending, self._state.cluster_index, self._mover, self._files.queue_path)
        self._policy.note_durable(self._commit.items)
        self._state.note_durable(pending.number)
        self.counts.add_made(len(pending.entries), max(0.0, self._reactor.seconds() - began_s), self._state.now())
        for spool_id in pending.lacking:
            self._log.error("The content of {spool_id} can't be read in the journal", spool_id=f"{spool_id:016X}")
        self._go_on(pending)

    def hurry(self) -> None:
        """Apply the rest of a durable checkpoint now."""
        if self._state.pending is not None:
            self._go_on(self._state.pending, all_of_it=True)

    def _go_on(self, pending: PendingCheckpoint, *, all_of_it: bool = False) -> None:
        """Apply the next slice, and the others in turns of their own."""
        apply = self._apply
        if apply is None or self._state.pending is not pending:
            return  # it was hurried
        try:
            while apply.step():
                if not all_of_it:
                    self._reactor.callLater(PAUSE_S, self._go_on, pending)
                    return
        except Exception:
            self._apply, self.is_broken = None, True
            self._commit.break_down(Failure())  # type: ignore[no-untyped-call]  # Twisted's
            self._over.callback(None)
            return
        self._finish(pending)

    def _finish(self, pending: PendingCheckpoint) -> None:
        self._apply = None
        self._state.end_checkpoint()
        if self._state.cluster_index.has_marks():
            self._policy.note_change(self._state.now())
        self._segments.free(pending.horizon, pending.unread)
        self._over.callback(None)

    def abandon(self, pending: PendingCheckpoint) -> None:
        """Abandon it, if it is under way: its entries stay in the memtable."""
        if self._state.pending is not pending:
            return
        self._state.end_checkpoint()
        self.counts.add_abandoned()
        self._policy.note_abandoned(self._state.now())
        self._files.note_abandoned(pending)
        self._mover.abandon_moves(pending)
        if pending.is_sealed:
            self._over.callback(None)
