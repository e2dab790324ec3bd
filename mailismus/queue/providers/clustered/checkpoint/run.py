"""Checkpoints: what stays is written behind into clusters and silos, and the journal before the horizon is free.

1. The horizon is chosen: the last batch that is durable *and* applied to the indexes. All that is live and young is to
   move. (A batch that is durable and not applied yet lies behind the horizon: what it brought is not moved, what it
   settled is not marked.)
2. Contents into silos. 3. Lines into clusters. 4. State bytes of lines that are over; clusters without a live line, and
   those of a checkpoint that came to nothing, are unlinked (`cleanup`).
5. One barrier over all of that.
6. The record `checkpoint K` goes through the journal. **This is the commit instant**: until it is durable files numbered K
   and bytes beyond an open cluster's committed length are nothing; from then on the journal before the horizon is.
7. What was moved rests from now on, slice by slice (`apply`).
8. Segments before the horizon are used again.

What is settled while its line is moved is *late*: its place goes into the journal before the record, and is marked by the
next checkpoint. A settle that goes into the journal behind the record names its place itself.

A checkpoint that can't write what is new, or whose record's batch fails, is abandoned: everything stays young, the next
one has another number and writes everything anew.

Source: `docs/formats/cluster`; the rules are explored state by state in the queue's model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.presence import Presence
from mailismus.disk.worker import IWorker
from mailismus.journal.commit import GroupCommit
from mailismus.journal.pool import SegmentPool
from mailismus.journal.writer import JournalWriter
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.checkpoint.apply import PAUSE_S, CheckpointApply, EntryMover
from mailismus.queue.providers.clustered.checkpoint.cleanup import ClusterCleanup, Kept
from mailismus.queue.providers.clustered.checkpoint.write import (
    CheckpointWriter,
    OpenCluster,
    PendingCheckpoint,
    Unreadable,
    copy_contents,
)
from mailismus.queue.providers.clustered.commit.items import CheckpointItem, PlacesItem
from mailismus.queue.providers.clustered.format.record import Checkpoint, checkpoint_record
from mailismus.queue.providers.clustered.index.cluster_index import ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable

TICK_S = 0.25
"""Seconds between two looks whether a checkpoint is due."""

MOST_ENTRIES = 20_000
"""Young entries at which a checkpoint begins: the turn of the reactor that takes them over lasts some 5 us for each."""

MOST_ITEMS = 100_000
"""Items in the journal since the last checkpoint at which one begins: what bounds a start."""

IDLE_S = 8.0
"""Seconds after a change at which a checkpoint begins, when nothing else asks for one."""

AGAIN_S = 3.0
"""Seconds before the next try after one was abandoned."""

MOST_TRIES = 3
"""Checkpoints that come to nothing because a content can't be read in the journal, before its message rests without it."""

SLICE = 200
"""Messages, or entries, handed to a worker at once."""


class CheckpointRunner:
    """Makes checkpoints when they are due, one at a time."""

    _log = Logger()

    def __init__(
        self,
        settings: QueueSettings,
        disk: IDisk,
        writer: JournalWriter,
        commit: GroupCommit,
        pool: SegmentPool,
        worker: IWorker,
        reactor: IReactorTime,
        now: Callable[[], float],
        young: Memtable,
        resting: ClusterIndex,
        mover: EntryMover,
        *,
        next_number: int,
        epoch: Callable[[], int],
        presence: Presence,
    ) -> None:
        self._maxage_s = settings.journal.maxage_s
        self._maxsize = settings.journal.maxsize
        self._queue_path = settings.rootpath
        self._writer = writer
        self._commit = commit
        self._pool = pool
        self._worker = worker
        self._reactor = reactor
        self._now = now
        self._young = young
        self._resting = resting
        self._mover = mover
        self._next_number = next_number
        self.newest = next_number - 1
        """Number of the newest checkpoint that counts."""
        self._epoch = epoch
        self._presence = presence
        spool = settings.spool
        self.write = CheckpointWriter(
            disk, settings.rootpath, spool.rootpath, settings.maxclustersize, has_links=spool.hardlinks
        )
        self._upkeep = ClusterCleanup(self.write, worker, resting, settings.rootpath)
        self._corrupt_path = os.path.join(settings.rootpath, "corrupt")
        self._grows: dict[tuple[Area, str], OpenCluster] = {}
        self._syncs_all = True
        """The next one syncs the whole file system: what a start removed is durable with it."""
        self.moving: PendingCheckpoint | None = None
        self._began_s = 0.0
        """When that began, by the reactor's clock."""
        self._sick: set[int] = set()
        self._unread: dict[int, int] = {}
        """Segments of which a content could not be read, and how often."""
        self._aside: set[int] = set()
        """Segments of which a content never could be read: they are kept for whoever can."""
        self._timer: IDelayedCall | None = None
        self._not_before = 0.0
        self._items_then = 0
        self._changed_at: float | None = None
        self._whole: list[Deferred[None]] = []
        self._is_stopped = False
        self._is_beginning = False
        self._takes_over: CheckpointApply | None = None
        """Of the checkpoint under way: its record is durable."""
        self.is_broken = False
        """What a durable checkpoint moved could not be taken over, a fault of our own: there is no other one."""
        self.checkpoints = self.abandoned = self.moved = 0
        """Checkpoints that became durable, that came to nothing; entries moved."""
        self.took_s = 0.0
        """How long those that became durable took, together."""
        self.made_at: float | None = None
        """When the newest became durable, UTC seconds."""

    # when

    def start(self) -> None:
        """Begin to look."""
        self._tick()

    def stop(self) -> None:
        """No more looks."""
        self.hurry()
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    @property
    def used_bytes(self) -> int:
        """Bytes written to the segments in use."""
        return sum(segment.end for segment in list(self._writer.segments.values()))

    @property
    def excess(self) -> float:
        """How much longer than `maxsize` the journal is, as a share of that; 0: it is not."""
        return max(0.0, self.used_bytes / self._maxsize - 1)

    @property
    def is_full(self) -> bool:
        """The journal is twice as long as `maxsize`: no mail is accepted."""
        return self.used_bytes > 2 * self._maxsize

    def add_failed(self, segments: Collection[int]) -> None:
        """A barrier of these segments failed, or they are gone: they are not used again. What lives in them and could not be
        said again is written behind soon."""
        self._sick.update(segments)

    def on_batch(self) -> None:
        """A batch became durable."""
        self._pool.top_up()
        if self._commit.items == self._items_then and not any(c.owed for c in self._resting.clusters.values()):
            return  # the batch that carried the last checkpoint's own record
        if self._changed_at is None:
            self._changed_at = self._now()
        if self.moving is None and (
            self._young.entry_count >= MOST_ENTRIES
            or self._commit.items - self._items_then >= MOST_ITEMS
            or self.used_bytes >= max(self._maxsize, 4 * self._pool.size_bytes)
        ):
            self._begin_if_allowed()

    def _tick(self) -> None:
        if self._is_stopped:
            return
        self._timer = self._reactor.callLater(TICK_S, self._tick)
        self._pool.top_up()
        if self.moving is not None:
            return
        now = self._now()
        since, changed_at = self._young.oldest_since(), self._changed_at
        # What lies ahead of now does so because the clock was set back.
        if (
            self._sick & self._writer.segments.keys()
            or (since is not None and not 0 <= now - since < self._maxage_s)
            or (changed_at is not None and not 0 <= now - changed_at < IDLE_S)
        ):
            self._begin_if_allowed()

    def _begin_if_allowed(self) -> None:
        if not 0 < self._not_before - self._now() <= AGAIN_S and self._commit.trouble is None and not self._is_stopped:
            self.run()

    def run(self) -> Deferred[None]:
        """One checkpoint, now, or the one under way; fires when it is over: durable, abandoned, not begun. Never fails."""
        done: Deferred[None] = Deferred()
        self._whole.append(done)
        if self._commit.is_telling:
            # The horizon lies between two batches, never within one of which some items are not in the index yet.
            if not self._is_beginning:
                self._is_beginning = True
                self._reactor.callLater(0, self._begin)
        else:
            self._begin()
        return done

    def _begin(self) -> None:
        self._is_beginning = False
        if self.is_broken:
            self._tell()
        elif self.moving is None and self._commit.trouble is not None:
            self._tell()  # what lives is being said again behind this horizon: it would be there twice
        elif self.moving is None:
            self.moving = PendingCheckpoint(self._next_number, self._commit.applied_sequence, self._now(), {})
            self._began_s = self._reactor.seconds()
            self._next_number += 1
            Deferred.fromCoroutine(self._run(self.moving)).addErrback(self._on_broken, self.moving)

    def write_behind_all(self) -> Deferred[None]:
        """Everything that is young now is written behind when this fires (or a checkpoint came to nothing)."""
        done: Deferred[None] = Deferred()
        # In a turn of its own: this one may be in the middle of applying a batch. What came after the checkpoint under way
        # began needs another; many that wait share it.
        self._reactor.callLater(0, self._run_for, done, 1 if self.moving is None else 2)
        return done

    def _run_for(self, done: Deferred[None], rounds: int) -> None:
        self.run().addCallback(lambda _: self._run_for(done, rounds - 1) if rounds > 1 else done.callback(None))

    # how

    async def _run(self, moving: PendingCheckpoint) -> None:
        youngs = list(self._young.messages.values())
        entries = [(young.message, entry) for young in youngs for entry in young.entries.values()]
        moving.entries = {QueueId(message.spool_id, entry.number): entry for message, entry in entries}
        moving.late = {queue_id for queue_id in self._mover.asked if queue_id in moving.entries}
        grows = dict(self._grows)
        owed = {cluster: frozenset(cluster.owed) for cluster in self._resting.clusters.values() if cluster.owed}
        interruptions = self._commit.interruptions
        try:
            await self._write_contents(moving, youngs)
            for start in range(0, len(entries), SLICE):
                await self._worker.run(partial(self.write.write_lines, moving, entries[start : start + SLICE], grows))
            kept = await self._upkeep.run(moving, owed)
            self._grows = {key: grown for key, grown in self._grows.items() if grown.id not in kept.gone}
            await self._worker.run(partial(self._make_durable, moving, with_rest=self._syncs_all))
        except OSError as error:
            if isinstance(error, Unreadable):
                self._unread[error.segment] = self._unread.get(error.segment, 0) + 1
            self._log.warn("A checkpoint came to nothing, its entries stay in the journal: {error}", error=error)
            self._abandon(moving)
            return
        if self._commit.interruptions != interruptions:
            # What lives was said again behind the horizon, or what was to be settled is not: it would be there twice, or
            # not at all. Or directories were away meanwhile.
            self._abandon(moving)
            return
        self._seal(moving, {key: grown for key, grown in grows.items() if grown.id not in kept.gone}, kept)

    def _make_durable(self, moving: PendingCheckpoint, *, with_rest: bool) -> None:
        """In a worker."""
        self.write.make_durable(moving, with_rest=with_rest)
        self._presence.check()  # a cluster that is not there counts as marked, cut and unlinked

    def _on_broken(self, failure: Failure, moving: PendingCheckpoint) -> None:
        self._log.failure("A checkpoint failed unexpectedly", failure)
        self._abandon(moving)

    async def _write_contents(self, moving: PendingCheckpoint, youngs: Sequence[JournaledMessage]) -> None:
        in_journal = [young for young in youngs if not young.is_in_silo]
        given_up = {segment for segment, tries in self._unread.items() if tries >= MOST_TRIES}
        for start in range(0, len(in_journal), SLICE):
            part = in_journal[start : start + SLICE]
            segments = self._writer.segments.copy()
            await self._worker.run(partial(copy_contents, self.write, moving, part, segments, given_up))

    def _seal(self, moving: PendingCheckpoint, grows: dict[tuple[Area, str], OpenCluster], kept: Kept) -> None:
        """Say it in the journal."""
        moving.is_sealed = True
        places = [(queue_id, moving.places[queue_id]) for queue_id in sorted(moving.late)]
        for item in PlacesItem.of([*places, *kept.places()]):
            self._commit.append(item)
        lengths = {grown.id: grown.length for grown in grows.values()} | self._upkeep.lengths(kept)
        record = checkpoint_record(Checkpoint(moving.horizon, self._epoch(), moving.number, lengths))
        done = partial(self._committed, moving, grows, kept)
        self._commit.append(CheckpointItem(record, done, partial(self._abandon, moving)))

    def _committed(self, moving: PendingCheckpoint, grows: dict[tuple[Area, str], OpenCluster], kept: Kept) -> None:
        self._upkeep.committed(kept)
        self._takes_over = CheckpointApply(moving, self._resting, self._mover, self._queue_path)
        self._grows = grows
        self._syncs_all = False
        self._items_then = self._commit.items
        self._changed_at = None
        self.newest = moving.number
        self.checkpoints += 1
        self.made_at = self._now()
        self.took_s += max(0.0, self._reactor.seconds() - self._began_s)
        self.moved += len(moving.entries)
        for spool_id in moving.lacking:
            self._log.error("The content of {spool_id} can't be read in the journal", spool_id=f"{spool_id:016X}")
        self._go_on(moving)

    def hurry(self) -> None:
        """What a durable checkpoint moved is taken over now."""
        if self.moving is not None:
            self._go_on(self.moving, all_of_it=True)

    def _go_on(self, moving: PendingCheckpoint, *, all_of_it: bool = False) -> None:
        """The next slice of what is taken over, and the others in turns of their own."""
        takes_over = self._takes_over
        if takes_over is None or self.moving is not moving:
            return  # it was hurried
        try:
            while takes_over.step():
                if not all_of_it:
                    self._reactor.callLater(PAUSE_S, self._go_on, moving)
                    return
        except Exception:
            self._takes_over, self.is_broken = None, True
            self._commit.break_down(Failure())  # type: ignore[no-untyped-call]  # Twisted's
            self._tell()
            return
        self._finish(moving)

    def _finish(self, moving: PendingCheckpoint) -> None:
        self.moving = self._takes_over = None
        if any(cluster.owed for cluster in self._resting.clusters.values()):
            self._changed_at = self._changed_at or self._now()
        self._aside |= moving.unread
        self._free_segments(moving.horizon)
        self._tell()

    def _free_segments(self, horizon: int) -> None:
        writer = self._writer
        writer.horizon = max(writer.horizon, horizon)
        for number, segment in sorted(writer.segments.copy().items()):
            if segment.last_sequence <= horizon and segment is not writer.current:
                del writer.segments[number]
                self._unread.pop(number, None)
                if number in self._aside:
                    self._aside.discard(number)
                    self._sick.discard(number)
                    self._pool.set_aside(segment, self._corrupt_path)
                elif number in self._sick:
                    self._sick.discard(number)
                    self._pool.remove(segment)
                else:
                    self._pool.adopt(segment)
        self._pool.top_up()

    def _abandon(self, moving: PendingCheckpoint) -> None:
        """It never was: its own files are dead, and what it wrote behind open clusters is nothing."""
        if self.moving is not moving:
            return
        self.moving = None
        self.abandoned += 1
        self._not_before = self._now() + AGAIN_S
        self._changed_at = self._changed_at or self._now()
        self._upkeep.abandoned(moving)
        # The journal may name places behind a committed length, for entries that are over: no other line gets one of them.
        self._grows = {
            key: grown
            for key, grown in self._grows.items()
            if grown.id not in moving.grown and grown.id.path(self._queue_path) not in moving.suspects
        }
        self._mover.abandon_moves(moving)
        self._syncs_all = True
        self._tell()

    def _tell(self) -> None:
        waiting, self._whole = self._whole, []
        for deferred in waiting:
            deferred.callback(None)
