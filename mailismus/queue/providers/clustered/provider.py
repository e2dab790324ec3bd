"""The clustered queue: entries and messages in a journal of group commits, large messages in their silos.

    draft -> commit -> [one batch, one barrier] -> young -> take -> settle -> [the next batch] -> gone
                                                     |                 ^
                                                     +- [checkpoint] -> resting

What is young has its durable copy in the journal and an index of it in memory (`young`). What stays is written behind into
clusters and silos by checkpoints (`checkpoint`); of it the clusters are known (`resting`), and read when they are due
(`visit`). Bytes go with their last entry (`spool.references`, `walk`).

*Rules*: nothing is answered, taken or released before the barrier of its batch has returned. Everything here runs in the
reactor's thread; everything that blocks runs in a worker.

Source: `docs/formats/journal`, `docs/durability`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from functools import partial

import attrs
from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import Unavailable
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.writer import most_records_size
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import (
    Area,
    Entry,
    Filter,
    IContent,
    IDraft,
    Message,
    Page,
    Settlement,
    Submission,
    Summary,
)
from mailismus.queue.providers.clustered.checkpoint import Checkpoints
from mailismus.queue.providers.clustered.cluster import Place
from mailismus.queue.providers.clustered.content import WholeContent, as_storage_error, open_in_silo
from mailismus.queue.providers.clustered.draft import Budget, ClusteredDraft
from mailismus.queue.providers.clustered.items import LONGEST_LINE, CommitItem, EpochItem, say_again
from mailismus.queue.providers.clustered.line import format_lines
from mailismus.queue.providers.clustered.listing import Looks, is_wanted
from mailismus.queue.providers.clustered.opening import Opened
from mailismus.queue.providers.clustered.record import epoch_record, lines_record, settled_record
from mailismus.queue.providers.clustered.resting import RestingEntry
from mailismus.queue.providers.clustered.space import SpaceWatch
from mailismus.queue.providers.clustered.visit import Visits
from mailismus.queue.providers.clustered.walk import QueueWalk
from mailismus.queue.providers.clustered.writebehind import Moving
from mailismus.queue.providers.clustered.young import YoungIndex, YoungMessage
from mailismus.spool.message_file import MessageFileWriter, remove_message_file
from mailismus.spool.references import ReferenceCache, Verdict
from mailismus.spool.silo import message_path

DRAFT_BYTES = 32 << 20
"""Memory of all drafts together that are small enough to stay there."""

BEHIND_BYTES = 32 << 20
"""Memory of all drafts together that waits for the disk; beyond it each client waits for its own piece."""

CONTENT_BYTES = 32 << 20
"""Memory of all young contents together; beyond it they are read from the journal."""

WALK_S = 3.0
"""Seconds that messages of which it is not known whether they are over wait for others, before a walk looks."""

BRAKE_S = 0.2
"""Seconds that a 250 waits while the journal is longer than `maxsize`."""

GIVE_UP_S = 5.0
"""Seconds that a close waits for a journal that can't be written: what was settled meanwhile may be tried twice."""

_LINE_SHARE = 10
"""A new recipient's line is at most so many times (length of the recipient + 64) long: what the grammar of addresses lets
be escaped included."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@attrs.frozen
class Workers:
    """Where blocking calls run: the journal's one thread, and a few for files."""

    journal: IWorker
    files: IWorker


class ClusteredQueue:
    """`IQueue` on local files."""

    _log = Logger()

    def __init__(
        self,
        settings: QueueSettings,
        disk: IDisk,
        opened: Opened,
        workers: Workers,
        reactor: IReactorTime,
        now: Callable[[], float],
    ) -> None:
        """`opened` holds the locks and what the start found; `now` is the wall clock."""
        self._settings = settings
        self._disk = disk
        self._opened = opened
        self._workers = workers
        self._now = now
        self._spool_path = settings.spool.rootpath
        self._spool_ids = opened.spool_ids
        self._index = YoungIndex()
        self._resting = opened.resting
        self._drafts = Budget(DRAFT_BYTES)
        self._behind = Budget(BEHIND_BYTES)
        self._contents = Budget(CONTENT_BYTES)
        most = most_records_size(opened.pool.size_bytes)
        self._largest_in_journal = min(settings.journal.largemsgsize, most // 4)
        self._most = most
        self.max_envelope_bytes = (most - self._largest_in_journal) // _LINE_SHARE
        self.commits = GroupCommit(opened.writer, workers.journal, reactor, most, self._on_batch, self._on_sick)
        self.checkpoints = Checkpoints(
            settings,
            disk,
            opened.writer,
            self.commits,
            opened.pool,
            workers.files,
            reactor,
            now,
            self._index,
            self._resting,
            self,
            next_number=opened.next_checkpoint,
            epoch=self._epoch,
        )
        self.space = SpaceWatch(disk, settings, workers.files, reactor)
        self._ready: dict[Area, dict[Deferred[None], None]] = {area: {} for area in Area}
        self._walk_timer: IDelayedCall | None = None
        self._is_reserving_epoch = False
        self._is_closing = False
        self._finishing = 0
        """Commits whose large messages are being made durable: they have not come to the journal yet."""
        self._reactor = reactor
        self._idle: Deferred[None] | None = None
        self.asked: dict[QueueId, int] = {}
        """Entries whose settle has gone into the journal and is not durable yet: how often (`checkpoint.Mover`)."""
        self._first_new = SpoolId(opened.spool_ids.epoch << 32)
        self.references = ReferenceCache(settings.spool.maxspidcache, self._first_new)
        self.visits = Visits(disk, settings.rootpath, workers.files, self._resting, self._out_young)
        self.walk = QueueWalk(
            disk,
            self._spool_path,
            workers.files,
            self._index,
            self._resting,
            self.references,
            self._first_new,
            self._unlink_message,
        )
        self.looks = Looks(disk, workers.files, self._index, self._resting, lambda: self.checkpoints.newest)
        self.unlinks_failed = 0

    # opening and closing

    def open(self) -> Deferred[None]:
        now = self._now()
        for young in self._opened.youngs:
            self._index.add(young, now)
        self._opened.pool.top_up()
        self.space.start()
        self.checkpoints.start()
        self._walk_if_needed()
        return succeed(None)

    def close(self) -> Deferred[None]:
        self._is_closing = True
        self.space.stop()
        self.walk.stop()
        if self._walk_timer is not None and self._walk_timer.active():
            self._walk_timer.cancel()
        if self.commits.trouble is None:
            last = self.checkpoints.run()
            last.addCallback(lambda _: self.checkpoints.run() if self._index.messages else None)
            return last.addCallback(lambda _: self._close())
        return self._close()

    def _close(self) -> Deferred[None]:
        self.checkpoints.stop()
        self._idle = Deferred()
        self.commits.hurry()
        self._look_idle()
        idle = self._idle
        if idle is None:
            idle = succeed(None)
        else:
            self._reactor.callLater(GIVE_UP_S, self._give_up)
        return idle.addCallback(lambda _: self._opened.release())

    def _look_idle(self) -> None:
        if self._idle is not None and self.commits.is_idle and not self._finishing:
            idle, self._idle = self._idle, None
            idle.callback(None)

    def _give_up(self) -> None:
        """It has taken long: go on waiting for a slow disk, not for a sick one."""
        if self._idle is None:
            return
        if self.commits.trouble is None:
            self._reactor.callLater(GIVE_UP_S, self._give_up)
            return
        self._log.error("Closed while the journal can't be written; what was settled last may be tried again.")
        idle, self._idle = self._idle, None
        idle.callback(None)

    # in

    def draft(self) -> IDraft:
        trouble = self.commits.trouble
        if trouble is not None:
            raise Unavailable(f"the journal can't be written: {trouble}", trouble.errno in _FULL)
        if self.checkpoints.is_full:
            raise Unavailable("the journal is twice as long as `maxsize`: the disk is behind", full=True)
        if self._opened.pool.is_short or self.space.is_short:
            raise Unavailable("the file system is full", full=True)
        if self._is_closing:
            raise Unavailable("the queue is closing")
        spool_id = self._next_spool_id()
        file = MessageFileWriter(self._disk, self._spool_path, spool_id)
        files, bufsize = self._workers.files, self._settings.spool.bufsize
        return ClusteredDraft(spool_id, file, files, self._drafts, self._behind, self._largest_in_journal, bufsize)

    def _next_spool_id(self) -> SpoolId:
        spool_ids = self._spool_ids
        if spool_ids.wants_epoch() and not self._is_reserving_epoch:
            self._is_reserving_epoch = True
            self.commits.append(EpochItem(epoch_record(spool_ids.epoch + 1), self._epoch_is_reserved))
        spool_id = spool_ids.next()
        if spool_id is None:
            raise Unavailable("no spool id is left until the next epoch is durable")
        return spool_id

    def _epoch_is_reserved(self) -> None:
        self._is_reserving_epoch = False
        self._spool_ids.reserved_epoch = self._opened.writer.epoch = self._spool_ids.epoch + 1

    def _epoch(self) -> int:
        return self._spool_ids.reserved_epoch

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        item = CommitItem(self)
        if not submissions:
            at_once = self._most // 2 // LONGEST_LINE
            if len(settlements) > at_once:
                return self._commit_in_parts(settlements, at_once)
            strangers = self._append(item, submissions, settlements)
            if not strangers or not self._resting.clusters:
                return item.done
            found = Deferred.fromCoroutine(self._settle_strangers(strangers))
            return gatherResults([item.done, found]).addCallback(lambda parts: [*parts[0], *parts[1]])
        drafts = []
        is_streaming = False
        for submission in submissions:
            draft = submission.draft
            if not isinstance(draft, ClusteredDraft):
                raise TypeError(f"a draft of another provider: {draft!r}")
            drafts.append(draft)
            is_streaming = is_streaming or draft.is_in_silo
        item.drafts = drafts
        if is_streaming:
            self._finishing += 1
            finished = gatherResults([draft.finish() for draft in drafts], consumeErrors=True)
            finished.addCallbacks(
                lambda _: self._append(item, submissions, settlements), self._not_finished, errbackArgs=(item,)
            ).addBoth(self._has_finished)
        else:
            self._append(item, submissions, settlements)
        return item.done

    def _commit_in_parts(self, settlements: Sequence[Settlement], at_once: int) -> Deferred[Sequence[SpoolId]]:
        """More settlements than one batch is sure to hold."""
        starts = range(0, len(settlements), at_once)
        parts = [self.commit((), settlements[start : start + at_once]) for start in starts]
        return gatherResults(parts).addCallback(lambda over: [spool_id for part in over for spool_id in part])

    async def _settle_strangers(self, settlements: list[Settlement]) -> Sequence[SpoolId]:
        """Settlements of entries that nobody took: those that rest are looked for, the others are gone."""
        wanted = {settlement.queue_id for settlement in settlements}
        for cluster in list(self._resting.clusters.values()):
            for line in await self.looks.live_lines(cluster):
                queue_id = QueueId(line.message.spool_id, line.entry.number)
                if queue_id in wanted and not cluster.is_hidden(line.offset):
                    self._resting.hold(RestingEntry(line.message, line.entry, cluster, line.offset))
        found = [settlement for settlement in settlements if settlement.queue_id in self._resting.out]
        return await self.commit((), found) if found else ()

    def _not_finished(self, failure: Failure, item: CommitItem) -> None:
        """A large message could not be made durable: nothing of the commit counts."""
        cause = failure.value.subFailure if isinstance(failure.value, FirstError) else failure
        for draft in item.drafts:
            draft.drop()
        item.done.errback(cause)

    def _has_finished(self, result: Failure | None) -> Failure | None:
        self._finishing -= 1
        self._look_idle()
        return result

    def _append(
        self, item: CommitItem, submissions: Sequence[Submission], settlements: Sequence[Settlement]
    ) -> list[Settlement]:
        """Into the journal; gives the settlements of entries that are neither young nor out."""
        strangers: list[Settlement] = []
        for submission, draft in zip(submissions, item.drafts, strict=True):
            young, entries = _begin(submission, draft)
            item.add_message(young, entries)
        if settlements:
            strangers = self._add_settlements(item, settlements)
        if item.size_bytes:
            self.commits.append(item)
        else:
            item.done.callback(())
        return strangers

    def _add_settlements(self, item: CommitItem, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Records of these settlements; gives those of entries that are neither young nor out."""
        strangers: list[Settlement] = []
        messages, asked = self._index.messages, self.asked
        known: list[Settlement] = []
        over: list[tuple[QueueId, Place | None]] = []
        lines: list[bytes] = []
        for settlement in settlements:
            spool_id, number = queue_id = settlement.queue_id
            young = messages.get(spool_id)
            entry = young.entries.get(number) if young is not None else None
            place: Place | None = None
            if entry is not None:
                assert young is not None
                message = young.message
                place = self._place_of_moving(queue_id, entry)
            else:
                resting = self._resting.out.get(queue_id)
                if resting is None:
                    strangers.append(settlement)
                    continue
                message, entry, place = resting.message, resting.entry, resting.place
            known.append(settlement)
            asked[queue_id] = asked.get(queue_id, 0) + 1
            if settlement.area is None:
                over.append((queue_id, place))
                continue
            if place is not None:
                over.append((queue_id, place))
            successor = _successor(entry, settlement, settlement.area)
            lines.append(lines_record(settlement.area, spool_id, format_lines(message, [successor])))
        if over:
            item.add(settled_record(over))
        for record in lines:
            item.add(record)
        item.settlements = known
        return strangers

    def _place_of_moving(self, queue_id: QueueId, entry: Entry) -> Place | None:
        """Where the line of a young entry will be when the checkpoint under way is durable, if that has been said."""
        moving = self.checkpoints.moving
        if moving is None or moving.entries.get(queue_id) is not entry:
            return None
        if moving.is_sealed:
            return moving.places[queue_id]
        moving.late.add(queue_id)
        return None

    # what became of it

    def commit_is_durable(self, item: CommitItem, segment: int, offset: int) -> None:
        """Its barrier has returned (`ICommitOwner`)."""
        now = self._now()
        for (young, entries, content_offset), draft in zip(item.youngs, item.drafts, strict=True):
            draft.keep()
            young.segment, young.offset = segment, offset + content_offset
            self._hold_content(young)
            young.entries = {entry.number: entry for entry in entries}
            self._index.add(young, now)
            if young.is_in_silo and young.message.recipient_count > 1:
                self.references.add(young.message.spool_id, len(entries))
        over: list[SpoolId] = []
        for settlement in item.settlements:
            if self._settle(settlement, now):
                over.append(settlement.queue_id.spool_id)
        if item.youngs and self.checkpoints.is_behind:
            # Reception goes no faster than what is written behind.
            self._reactor.callLater(BRAKE_S, item.done.callback, over)
        else:
            item.done.callback(over)

    def _settle(self, settlement: Settlement, now: float) -> bool:
        """A settlement is durable; whether its message is over."""
        spool_id, number = queue_id = settlement.queue_id
        self._unask(queue_id)
        young = self._index.messages.get(spool_id)
        entry = young.entries.get(number) if young is not None else None
        if young is not None and entry is not None:
            if settlement.area is not None:
                self._index.settle(young, number, _successor(entry, settlement, settlement.area), now)
                return False
            is_last = self._index.settle(young, number, None, now)
            if young.is_in_silo:
                return self._drop(young.message)
            if is_last:
                self._forget_content(young)
            return is_last
        resting = self._resting.settle(queue_id)
        if resting is None:
            return False
        if settlement.area is None:
            return self._drop(resting.message)
        self.walk.got_line(spool_id, resting.message.recipient_count)
        if young is None:
            young = YoungMessage(resting.message)
            young.is_in_silo = True
            self._index.add(young, now)
        self._index.put(young, _successor(resting.entry, settlement, settlement.area), now)
        return False

    def _unask(self, queue_id: QueueId) -> None:
        left = self.asked[queue_id] - 1
        if left:
            self.asked[queue_id] = left
        else:
            del self.asked[queue_id]

    def has_moved(self, moving: Moving) -> None:
        """A checkpoint is durable (`checkpoint.Mover`): what it moved rests, but for what was settled meanwhile."""
        index, resting = self._index, self._resting
        counts: dict[SpoolId, int] = {}
        for queue_id, entry in moving.entries.items():
            spool_id, number = queue_id
            place = moving.places[queue_id]
            cluster = resting.clusters[place.cluster]
            young = index.messages.get(spool_id)
            if young is None or young.entries.get(number) is not entry:
                resting.owe(cluster, place.offset)
                continue
            self.walk.got_line(spool_id, young.message.recipient_count)
            counts[spool_id] = counts.get(spool_id, 0) + 1
            if number in young.out or queue_id in self.asked:
                resting.hold(RestingEntry(young.message, entry, cluster, place.offset))
            else:
                resting.read_again(cluster, entry.due_at)
            index.move(young, number)
            if not young.entries:
                self._went_to_silo(young, counts[spool_id])
        for spool_id in {queue_id.spool_id for queue_id in moving.entries}:
            young = index.messages.get(spool_id)
            if young is not None:
                self._went_to_silo(young, counts.get(spool_id, 0))
            elif spool_id not in counts:
                self._unlink_message(spool_id)  # all of it was settled while its content was written
        for area, waiting in self._ready.items():
            if waiting and self._resting.next_due(area) is not None:
                self._fire(area)

    def _went_to_silo(self, young: YoungMessage, moved: int) -> None:
        """The message's content has been written behind; so many of its entries rest, the others are young."""
        if not young.is_in_silo:
            if young.message.recipient_count > 1:
                self.references.add(young.message.spool_id, moved + len(young.entries))
            self._forget_content(young)
            young.is_in_silo = True

    def _drop(self, message: Message) -> bool:
        """An entry of a message in its silo is over; whether it was surely the last."""
        spool_id = message.spool_id
        if message.recipient_count > 1:
            verdict = self.references.drop(spool_id)
            if verdict is not Verdict.RELEASE:
                if verdict is Verdict.UNSURE:
                    self._walk_if_needed()
                return False
        self._unlink_message(spool_id)
        return True

    def _walk_if_needed(self) -> None:
        """Look at all lines when there is something that only this can tell, many ids at a time."""
        if self._is_closing or self.walk.is_running or not self.references.needs_walk or self._walk_timer is not None:
            return
        delay_s = 0.0 if not self.references.is_complete or self.references.unsure.is_full else WALK_S
        self._walk_timer = self._reactor.callLater(delay_s, self._begin_walk)

    def _begin_walk(self) -> None:
        self._walk_timer = None
        if not self._is_closing:
            Deferred.fromCoroutine(self.walk.run()).addCallbacks(
                lambda _: self._walk_if_needed(), lambda failure: self._log.failure("A walk failed", failure)
            )

    def commit_has_failed(self, item: CommitItem, error: OSError) -> None:
        """Nothing of it counts, settlements included (`ICommitOwner`): a report and its bounces share their fate."""
        for draft in item.drafts:
            draft.drop()
        for settlement in item.settlements:
            self._unask(settlement.queue_id)
        item.done.errback(Unavailable(f"the journal can't be written: {error}", error.errno in _FULL))

    def _hold_content(self, young: YoungMessage) -> None:
        """Keep the content in memory while there is room."""
        content = young.content
        if content is not None:
            if self._contents.has_room(len(content)):
                self._contents.used += len(content)
            else:
                young.content = None

    def _forget_content(self, young: YoungMessage) -> None:
        content, young.content = young.content, None
        if content is not None:
            self._contents.used -= len(content)

    def _unlink_message(self, spool_id: SpoolId) -> None:
        """No live entry of it is left, durably: its file goes."""
        self._workers.files.run(lambda: remove_message_file(self._disk, self._spool_path, spool_id)).addErrback(
            self._not_removed, spool_id
        )

    def _not_removed(self, failure: Failure, spool_id: SpoolId) -> None:
        self.unlinks_failed += 1
        self._log.warn(
            "The message file of {spool_id} can't be removed: {error}", error=failure.value, spool_id=f"{spool_id:016X}"
        )

    def _on_batch(self) -> None:
        for area, waiting in self._ready.items():
            if waiting and self._index.has_ready(area):
                self._fire(area)
        self.checkpoints.has_changed()
        if self._idle is not None:
            self._look_idle()

    def _on_sick(self) -> Sequence[IItem]:
        """A barrier failed: what lives in that segment and is in memory is said again first; the rest by and by."""
        writer = self._opened.writer
        sick = max(writer.segments.copy(), default=0)
        self.checkpoints.is_sick(sick)
        return [
            item
            for young in self._index.messages.values()
            if young.segment == sick and (young.is_in_silo or young.content is not None)
            for item in say_again(young, young.content, self._most, self._has_said_again)
        ]

    def _has_said_again(self, young: YoungMessage, segment: int, content_offset: int) -> None:
        young.segment, young.offset = segment, content_offset

    # out

    def take(self, area: Area, limit: int, now: float, per_message: int) -> Deferred[list[Message]]:
        if limit <= 0 or self._resting.due(area, now) is None:
            return succeed(self._index.take(area, limit, now, per_message))
        return Deferred.fromCoroutine(self._take_of_both(area, limit, now, per_message))

    async def _take_of_both(self, area: Area, limit: int, now: float, per_message: int) -> list[Message]:
        """Young and resting, half of each while both have some: neither starves the other."""
        share = max(1, limit // 2) if self._index.has_ready(area) else limit
        taken = await self.visits.take(area, share, now, per_message)
        left = limit - sum(len(message.entries) for message in taken)
        young = self._index.take(area, left, now, per_message)
        left -= sum(len(message.entries) for message in young)
        taken += young
        if left > 0 and share < limit:
            taken += await self.visits.take(area, left, now, per_message)
        return taken

    def _out_young(self, spool_id: SpoolId) -> int:
        young = self._index.messages.get(spool_id)
        return len(young.out) if young is not None else 0

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        touched = self._index.give_back(queue_ids, not_before) | self._resting.give_back(queue_ids, not_before)
        for area, waiting in self._ready.items():
            if waiting and (area in touched or self._index.has_ready(area)):
                self._fire(area)

    def ready(self, area: Area) -> Deferred[None]:
        due_at = self._resting.next_due(area)
        if self._index.has_ready(area) or (due_at is not None and due_at <= self._now()):
            return succeed(None)
        waiting: Deferred[None] = Deferred(lambda gone: self._ready[area].pop(gone, None))
        self._ready[area][waiting] = None
        return waiting

    def _fire(self, area: Area) -> None:
        waiting, self._ready[area] = self._ready[area], {}
        for deferred in waiting:
            if not deferred.called:  # cancelled by one before it
                deferred.callback(None)

    def next_due(self, area: Area) -> float | None:
        dues = [due_at for due_at in (self._index.next_due(area), self._resting.next_due(area)) if due_at is not None]
        return min(dues, default=None)

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        young = self._index.messages.get(spool_id)
        if young is None or young.is_in_silo:
            return open_in_silo(self._disk, message_path(self._spool_path, spool_id), self._workers.files)
        if young.content is not None:
            return young.content
        return self._read_from_journal(young)

    def _read_from_journal(self, young: YoungMessage) -> Deferred[IContent]:
        """Copied whole in one act. Whether the message was written behind, or said again elsewhere, meanwhile is looked at
        afterwards, for its old segment may have been used anew."""
        number = young.segment
        segment = self._opened.writer.segments[number]
        spool_id = young.message.spool_id
        offset, size = young.offset, young.message.size_bytes

        def has_read(content: bytes) -> IContent | Deferred[IContent]:
            if young.is_in_silo:
                return open_in_silo(self._disk, message_path(self._spool_path, spool_id), self._workers.files)
            if young.segment != number or young.offset != offset:
                return self._read_from_journal(young)
            if len(content) != size:
                raise Unavailable("a journal segment is shorter than it was")
            return WholeContent(content)

        read = self._workers.files.run(lambda: segment.file.read_at(offset, size))
        return read.addCallbacks(has_read, as_storage_error)

    # looking

    def summary(self) -> Deferred[Summary]:
        return Deferred.fromCoroutine(self.looks.summarize())

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return Deferred.fromCoroutine(self.looks.search(wanted, after, limit))

    def visit_all(self, wanted: Filter, now: float) -> Deferred[int]:
        return Deferred.fromCoroutine(self._visit_all(wanted, now))

    async def _visit_all(self, wanted: Filter, now: float) -> int:
        count = 0
        if wanted.area not in (None, Area.DEFERRED):
            return 0
        for young in list(self._index.messages.values()):
            if wanted.spool_id not in (None, young.message.spool_id):
                continue
            for entry in list(young.entries.values()):
                if entry.area is Area.DEFERRED and wanted.matches(young.message, entry):
                    self._index.visit(young, entry, now)
                    count += 1
        for cluster in list(self._resting.clusters.values()):
            if cluster.id.area is Area.DEFERRED:
                found = await self.looks.count_matching(cluster, wanted)
                if found and self._resting.clusters.get(cluster.id) is cluster:
                    count += found
                    cluster.flushes.append(partial(is_wanted, wanted))
                    self._resting.read_again(cluster, now)
        if count and self._ready[Area.DEFERRED]:
            self._fire(Area.DEFERRED)
        return count


def _begin(submission: Submission, draft: ClusteredDraft) -> tuple[YoungMessage, list[Entry]]:
    """The message and the entries that a submission makes."""
    envelope, received_at = submission.envelope, submission.received_at
    recipients = envelope.recipients
    message = Message(
        draft.spool_id,
        envelope.sender,
        envelope.client,
        envelope.eightbit,
        received_at,
        draft.size_bytes,
        len(recipients),
        [],
    )
    young = YoungMessage(message)
    if draft.is_in_silo:
        young.is_in_silo = True
    else:
        young.content = b"".join(draft.parts)
    if submission.placements is None:
        incoming = Area.INCOMING
        return young, [Entry(n, recipient, incoming, received_at) for n, recipient in enumerate(recipients, 1)]
    return young, [
        Entry(p.number, recipients[p.number - 1], p.area, p.due_at, p.attempts, p.reply, p.host)
        for p in submission.placements
    ]


def _successor(entry: Entry, settlement: Settlement, area: Area) -> Entry:
    """The entry as it goes on."""
    return Entry(
        entry.number, entry.recipient, area, settlement.due_at, settlement.attempts, settlement.reply, settlement.host
    )
