"""Ledger: the effect of a settlement on an entry, in records and, once these are durable, in the indexes.

    memtable --settled--> gone | memtable again (retry, bounce)
      |
      +--checkpoint--> cluster index --settled--> gone | memtable again

*Rules*: indexes change when the records are durable, never before. A settlement names the place of its entry's line, or the
place that it will have once the checkpoint under way is durable (`checkpoint`). Message bytes are removed when no entry
needs them any more: at once where that is known, else after a scan of all lines (`release`).

*Not here*: batches and barriers (`journal.commit`), waiters (`waiters`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mailismus.mail.ids import EntryKey, QueueId, SpoolId
from mailismus.queue.entering import entries_of, message_of, new_entries, successor_of
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, EndedEntries, Entry, Message, Settlement, Submission
from mailismus.queue.providers.clustered.commit.items import CommitItem
from mailismus.queue.providers.clustered.format.cluster import FoundLine, Place
from mailismus.queue.providers.clustered.format.record import (
    lines_record,
    settled_in_memtable,
    settled_text,
    settled_text_record,
)
from mailismus.queue.providers.clustered.index.cluster_index import ClusteredEntry
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint, QueueState
from mailismus.spool.budget import Budget
from mailismus.spool.draft import SpoolDraft
from mailismus.spool.release import Release

CONTENT_BYTES = 32 << 20
"""Bytes of memory for contents of journaled messages; further contents are read from the journal."""

LONG_S = 2.0
"""The content of a message whose entries wait for so long is left to the journal: mail for hosts that are slow or dead comes
again many times, and takes no more memory meanwhile than it needs."""


_END = 1 << 32
"""Counts a settlement that removes its entry, behind all that replace it."""


class Ledger:
    """Entries of one queue. `moved` is called when a checkpoint has moved entries: a cluster may have due entries."""

    def __init__(self, state: QueueState, release: Release, moved: Callable[[], None]) -> None:
        self._state = state
        self._moved = moved
        self.memtable = state.memtable
        self.cluster_index = state.cluster_index
        self.release = release
        self._contents = Budget(CONTENT_BYTES)
        self.asked: dict[EntryKey, int] = {}
        """Entries with a settlement in the journal that is not durable yet (`apply.EntryMover`): the number of such
        settlements, and `_END` for the one that removes it."""
        self._in_vain: dict[SpoolId, int] = {}
        """Messages in the journal for which abandoned checkpoints left message files (`PendingCheckpoint.contents`)."""

    # records

    def add_settlements(
        self, item: CommitItem, ended: Sequence[EndedEntries], settlements: Sequence[Settlement]
    ) -> tuple[list[EndedEntries], list[Settlement]]:
        """Add the records of these settlements. `ended`: entries that are removed; the area of a settlement is not None.
        Return those of unknown entries: neither in the memtable nor handed out."""
        over: list[tuple[QueueId, Place | None]] = []
        texts, unknown = self._add_ended(item, ended, over)
        unknown_settlements, successors = self._add_replaced(item, settlements, over) if settlements else ([], [])
        if over:
            texts.append(settled_text(over))
        if texts:
            item.add(settled_text_record(b"".join(texts)))
        for record in successors:
            item.add(record)
        return unknown, unknown_settlements

    def _add_ended(
        self, item: CommitItem, ended: Sequence[EndedEntries], over: list[tuple[QueueId, Place | None]]
    ) -> tuple[list[bytes], list[EndedEntries]]:
        """Note entries that are removed. Return texts of a settled record for those in the memtable, and the unknown ones;
        add the others, with their places, to `over`."""
        texts: list[bytes] = []
        unknown: list[EndedEntries] = []
        known: list[EndedEntries] = []
        messages, asked, is_moving = self.memtable.messages, self.asked, self._state.pending is not None
        for group in ended:
            spool_id, numbers = group
            journaled = messages.get(spool_id)
            keys = [(spool_id, number) for number in numbers]
            if (
                journaled is None
                or is_moving
                or not all(map(journaled.entries.__contains__, numbers))
                or not asked.keys().isdisjoint(keys)
            ):
                self._add_ended_singly(group, over, known, unknown)
                continue
            asked.update(dict.fromkeys(keys, _END))
            texts.append(settled_in_memtable(spool_id, numbers))
            known.append(group)
        item.set_ended(known)
        return texts, unknown

    def _add_ended_singly(
        self,
        group: EndedEntries,
        over: list[tuple[QueueId, Place | None]],
        known: list[EndedEntries],
        unknown: list[EndedEntries],
    ) -> None:
        spool_id, numbers = group
        journaled = self.memtable.messages.get(spool_id)
        for number in numbers:
            queue_id, place = QueueId(spool_id, number), None
            entry = journaled.entries.get(number) if journaled is not None else None
            if entry is not None:
                place = self._place_in_checkpoint(queue_id, entry)
            else:
                clustered = self.cluster_index.out.get(queue_id)
                if clustered is None:
                    unknown.append((spool_id, (number,)))
                    continue
                place = clustered.place
            asked = self.asked.get(queue_id, 0)
            if asked >= _END:
                continue  # the entry is settled already: a record behind that one would be live at the next start
            self.asked[queue_id] = asked + _END
            known.append((spool_id, (number,)))
            over.append((queue_id, place))

    def _add_replaced(
        self, item: CommitItem, settlements: Sequence[Settlement], over: list[tuple[QueueId, Place | None]]
    ) -> tuple[list[Settlement], list[bytes]]:
        """Add entries in clusters that are replaced, and their places, to those of a settled record. Return the settlements
        of unknown entries, and the records of the successors."""
        unknown: list[Settlement] = []
        known: list[Settlement] = []
        records: list[bytes] = []
        messages, asked = self.memtable.messages, self.asked
        for settlement in settlements:
            spool_id, number = queue_id = settlement.queue_id
            area = settlement.area
            assert area is not None  # the caller has made it one of the ended entries
            journaled = messages.get(spool_id)
            entry = journaled.entries.get(number) if journaled is not None else None
            place: Place | None = None
            if entry is not None:
                assert journaled is not None
                message = journaled.message
                place = self._place_in_checkpoint(queue_id, entry)
            else:
                clustered = self.cluster_index.out.get(queue_id)
                if clustered is None:
                    unknown.append(settlement)
                    continue
                message, entry, place = clustered.message, clustered.entry, clustered.place
            if asked.get(queue_id, 0) >= _END:
                continue  # as above
            known.append(settlement)
            asked[queue_id] = asked.get(queue_id, 0) + 1
            if place is not None:
                over.append((queue_id, place))
            successor = successor_of(entry, settlement, area)
            records.append(lines_record(area, spool_id, format_lines(message, [successor])))
        item.set_settlements(known)
        return unknown, records

    def _place_in_checkpoint(self, queue_id: QueueId, entry: Entry) -> Place | None:
        """Return the place that the entry's line will have when the checkpoint under way is durable, if its record is
        written."""
        pending = self._state.pending
        if pending is None or pending.entries.get(queue_id) is not entry:
            return None
        if pending.is_sealed:
            return pending.places[queue_id]
        pending.late.add(queue_id)
        return None

    # once it is durable

    def arrive(self, journaled: JournaledMessage, segment: int, offset: int, now: float) -> None:
        """Add a message that is durable; its content begins at this offset of this segment, or is in its silo."""
        journaled.arrive(segment, offset)
        self.hold_content(journaled)
        self.memtable.add(journaled, now)
        if journaled.is_in_silo:
            self.release.track(journaled.message, len(journaled.entries))

    def arrive_new(self, journaled: JournaledMessage, segment: int, offset: int, now: float) -> None:
        """Add durable new mail whose content is in the journal."""
        journaled.arrive(segment, offset)
        self.hold_content(journaled)
        message = journaled.message
        if message.received_at <= now:
            self.memtable.add_new(journaled, Area.INCOMING, message.entries, now)
        else:
            self.memtable.add(journaled, now)

    def end(self, spool_id: SpoolId, numbers: Sequence[int]) -> bool:
        """Apply the durable end of entries. Return whether the message is surely over."""
        self._unask_ended(spool_id, numbers)
        memtable = self.memtable
        journaled = memtable.messages.get(spool_id)
        if journaled is None or not all(map(journaled.entries.__contains__, numbers)):
            return self._end_singly(spool_id, numbers)
        is_last = memtable.end(journaled, numbers)
        if journaled.is_in_silo:
            return self._release(journaled.message, numbers)
        if is_last:
            self.forget_content(journaled)
            if self._in_vain:
                self._remove_in_vain(spool_id, numbers)
        return is_last

    def _end_singly(self, spool_id: SpoolId, numbers: Sequence[int]) -> bool:
        """End entries of which some are in clusters, or ended before."""
        is_over = False
        for number in numbers:
            journaled = self.memtable.messages.get(spool_id)
            if journaled is not None and number in journaled.entries:
                is_last = self.memtable.end(journaled, (number,))
                if journaled.is_in_silo:
                    is_last = self._release(journaled.message, (number,))
                elif is_last:
                    self.forget_content(journaled)
                    self._remove_in_vain(spool_id, (number,))
                is_over = is_over or is_last
                continue
            clustered = self.cluster_index.settle(QueueId(spool_id, number))
            if clustered is not None:
                is_over = self._release(clustered.message, (number,)) or is_over
        return is_over

    def _release(self, message: Message, numbers: Sequence[int]) -> bool:
        """Note that entries of a message in its silo are over. Return whether one was surely the last."""
        is_over = False
        for number in numbers:
            is_over = self.release.entry_is_over(message, number) or is_over
        return is_over

    def _remove_in_vain(self, spool_id: SpoolId, numbers: Sequence[int]) -> None:
        """Remove the file that an abandoned checkpoint left of a message whose last entries are over."""
        pending = self._state.pending
        if spool_id in self._in_vain and (
            pending is None or all(QueueId(spool_id, number) not in pending.entries for number in numbers)
        ):
            self.release.files.remove_written(spool_id, self._in_vain.pop(spool_id))

    def replace(self, settlement: Settlement, now: float) -> None:
        """Apply a durable settlement that replaces an entry."""
        spool_id, number = queue_id = settlement.queue_id
        area = settlement.area
        assert area is not None  # as in `add_settlements`
        self.unask(queue_id)
        journaled = self.memtable.messages.get(spool_id)
        entry = journaled.entries.get(number) if journaled is not None else None
        if journaled is not None and entry is not None:
            self.memtable.replace(journaled, successor_of(entry, settlement, area), now)
            if area is Area.DEFERRED and settlement.due_at - now >= LONG_S:
                self._leave_content(journaled)
            return
        clustered = self.cluster_index.settle(queue_id)
        if clustered is None:
            return
        self.release.count_line(clustered.message)
        if journaled is None:
            journaled = JournaledMessage(clustered.message)
            journaled.put_in_silo()
            self.memtable.add(journaled, now)
        self.memtable.put(journaled, successor_of(clustered.entry, settlement, area), now)

    def unask(self, queue_id: QueueId) -> None:
        left = self.asked[queue_id] - 1
        if left:
            self.asked[queue_id] = left
        else:
            del self.asked[queue_id]

    def _unask_ended(self, spool_id: SpoolId, numbers: Sequence[int]) -> None:
        """Note that the settlement that removes these entries is durable, or does not count."""
        asked = self.asked
        for number in numbers:
            key = spool_id, number
            left = asked.pop(key) - _END
            if left:
                asked[key] = left

    def refuse(self, item: CommitItem) -> None:
        """Note that a commit failed: its settlements do not count."""
        for spool_id, numbers in item.ended:
            self._unask_ended(spool_id, numbers)
            for number in numbers:
                self._take_back(QueueId(spool_id, number))
        for settlement in item.settlements:
            self.unask(settlement.queue_id)
            self._take_back(settlement.queue_id)

    def _take_back(self, queue_id: QueueId) -> None:
        """Note that an entry is not late, if it was so by a settlement that does not count."""
        pending = self._state.pending
        if pending is not None and not pending.is_sealed and queue_id in pending.late and queue_id not in self.asked:
            journaled = self.memtable.messages.get(queue_id.spool_id)
            if journaled is not None and journaled.entries.get(queue_id.number) is pending.entries[queue_id]:
                pending.late.discard(queue_id)

    def abandon_moves(self, pending: PendingCheckpoint) -> None:
        """Note that a checkpoint was abandoned (`apply.EntryMover`). Remove its files of messages that ended meanwhile."""
        self._in_vain |= pending.contents
        for spool_id in [spool_id for spool_id in self._in_vain if spool_id not in self.memtable.messages]:
            self.release.files.remove_written(spool_id, self._in_vain.pop(spool_id))

    def move_entries(self, pending: PendingCheckpoint, queue_ids: Sequence[QueueId]) -> None:
        """Apply a durable checkpoint (`apply.EntryMover`): move these entries, but not those that were settled meanwhile."""
        memtable, cluster_index = self.memtable, self.cluster_index
        for queue_id in queue_ids:
            spool_id, number = queue_id
            entry, place = pending.entries[queue_id], pending.places[queue_id]
            cluster = cluster_index.clusters[place.cluster]
            journaled = memtable.messages.get(spool_id)
            is_live = journaled is not None and journaled.entries.get(number) is entry
            if journaled is not None and is_live:
                self.release.count_line(journaled.message)
            if spool_id not in pending.met:
                pending.met.add(spool_id)
                self._on_written(pending, spool_id, journaled)
            if journaled is None or not is_live:
                cluster_index.owe(cluster, place.offset)
                if pending.contents.get(spool_id) and (journaled is None or number not in journaled.entries):
                    self.release.files.remove_name(spool_id, number)  # it was settled while the content was written
                continue
            if number in journaled.out or queue_id in self.asked:
                cluster_index.hold(ClusteredEntry(journaled.message, entry, cluster, place.offset))
            else:
                line = FoundLine(place.offset, False, journaled.message, entry)
                if queue_id in memtable.given_back:
                    cluster_index.stay(cluster, line, memtable.given_back[queue_id])
                else:
                    cluster_index.arrive(cluster, line, pending.now)
            memtable.move(journaled, number)
        self._moved()

    def _on_written(self, pending: PendingCheckpoint, spool_id: SpoolId, journaled: JournaledMessage | None) -> None:
        """Note that the content of a message is in its silo: the checkpoint wrote it, or it was there before."""
        self._in_vain.pop(spool_id, None)
        if journaled is None:
            if pending.contents.get(spool_id) == 0:
                self.release.files.remove(spool_id)  # all of it was settled while its content was written
        elif not journaled.is_in_silo:
            self.release.track(journaled.message, len(journaled.entries))
            self.forget_content(journaled)
            journaled.put_in_silo()

    def hold_content(self, journaled: JournaledMessage) -> None:
        """Keep the content in memory while there is room."""
        content = journaled.content
        if content is not None and not self._contents.take(len(content)):
            journaled.leave_content(content)

    def leave_contents(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        """Leave the contents of messages whose entries were given back until then to the journal, if that is long."""
        if not_before - self._state.now() >= LONG_S:
            for spool_id, _ in queue_ids:
                journaled = self.memtable.messages.get(spool_id)
                if journaled is not None:
                    self._leave_content(journaled)

    def _leave_content(self, journaled: JournaledMessage) -> None:
        """Leave the content to the journal, unless an entry is out and may need it."""
        content = journaled.content
        if content is not None and not journaled.out:
            self._contents.give_back(len(content))
            journaled.leave_content(content)

    def forget_content(self, journaled: JournaledMessage) -> None:
        """Free the memory of the content."""
        self._contents.give_back(journaled.drop_content())


def begin_message(submission: Submission, draft: SpoolDraft) -> JournaledMessage:
    """Return the message of a submission, with its entries."""
    message, entries = message_of(submission, draft.stored_bytes, []), entries_of(submission)
    if not draft.is_in_silo:
        return JournaledMessage(message, entries, draft.content())
    journaled = JournaledMessage(message, entries)
    journaled.put_in_silo()
    return journaled


def begin_new_message(submission: Submission, draft: SpoolDraft, content: bytes) -> JournaledMessage:
    """Return the message of a submission of new mail whose content is in memory. The message has its entries too: it is
    handed out as it is."""
    entries = new_entries(submission.envelope.recipients, submission.received_at)
    return JournaledMessage(message_of(submission, draft.stored_bytes, entries), entries, content)
