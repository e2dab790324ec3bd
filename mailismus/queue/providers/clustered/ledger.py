"""The ledger: what becomes of entries, in the records that say it and in the indexes once it is durable.

    young --settled--> over | young again (retry, bounce)
      |
      +--checkpoint--> resting --settled--> over | young again

*Rules*: indexes change when it is durable, never before. A settle names where its line rests, or will rest once the
checkpoint under way is durable (`checkpoint`). Bytes go when no entry is left that needs them: at once where that is
known, after a walk over all lines where it is not (`release`).

*Not here*: batches and barriers (`journal.commit`), who waits (`provider`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Message, Settlement, Submission
from mailismus.queue.providers.clustered.checkpoint.write import PendingCheckpoint
from mailismus.queue.providers.clustered.commit.items import CommitItem
from mailismus.queue.providers.clustered.format.cluster import FoundLine, Place
from mailismus.queue.providers.clustered.format.record import lines_record, settled_record
from mailismus.queue.providers.clustered.index.cluster_index import ClusteredEntry, ClusterIndex
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.queue.providers.clustered.reclaim.release import Release
from mailismus.spool.draft import Budget, SpoolDraft

CONTENT_BYTES = 32 << 20
"""Memory of all young contents together; beyond it they are read from the journal."""


class Ledger:
    """The entries of one queue. `moving` tells of the checkpoint under way; `woken` is called when something may have
    become due by a move."""

    def __init__(
        self,
        young: Memtable,
        resting: ClusterIndex,
        release: Release,
        moving: Callable[[], PendingCheckpoint | None],
        woken: Callable[[], None],
    ) -> None:
        self._moving = moving
        self._woken = woken
        self.young = young
        self.resting = resting
        self.release = release
        self._contents = Budget(CONTENT_BYTES)
        self.asked: dict[QueueId, int] = {}
        """Entries whose settle has gone into the journal and is not durable yet: how often (`apply.EntryMover`)."""
        self._ending: set[QueueId] = set()
        """Of those, the ones that are over then."""
        self._in_vain: dict[SpoolId, int] = {}
        """Messages in the journal whose message files abandoned checkpoints left (`PendingCheckpoint.contents`)."""

    # records

    def add_settlements(self, item: CommitItem, settlements: Sequence[Settlement]) -> list[Settlement]:
        """Records of these settlements; gives those of entries that are neither young nor out."""
        strangers: list[Settlement] = []
        messages, asked = self.young.messages, self.asked
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
                resting = self.resting.out.get(queue_id)
                if resting is None:
                    strangers.append(settlement)
                    continue
                message, entry, place = resting.message, resting.entry, resting.place
            if queue_id in self._ending:
                continue  # it is over already: what comes behind that would be alive at the next start
            known.append(settlement)
            asked[queue_id] = asked.get(queue_id, 0) + 1
            if settlement.area is None:
                self._ending.add(queue_id)
                over.append((queue_id, place))
                continue
            if place is not None:
                over.append((queue_id, place))
            successor = successor_of(entry, settlement, settlement.area)
            lines.append(lines_record(settlement.area, spool_id, format_lines(message, [successor])))
        if over:
            item.add(settled_record(over))
        for record in lines:
            item.add(record)
        item.settlements = known
        return strangers

    def _place_of_moving(self, queue_id: QueueId, entry: Entry) -> Place | None:
        """Where the line of a young entry will be when the checkpoint under way is durable, if that has been said."""
        moving = self._moving()
        if moving is None or moving.entries.get(queue_id) is not entry:
            return None
        if moving.is_sealed:
            return moving.places[queue_id]
        moving.late.add(queue_id)
        return None

    # once it is durable

    def arrive(self, young: JournaledMessage, entries: list[Entry], segment: int, offset: int, now: float) -> None:
        """A new message; its content begins at this offset of this segment, or is in its silo."""
        young.segment, young.offset = segment, offset
        self.hold_content(young)
        young.entries = {entry.number: entry for entry in entries}
        self.young.add(young, now)
        if young.is_in_silo:
            self.release.track(young.message, len(entries))

    def settle(self, settlement: Settlement, now: float) -> bool:
        """A settlement is durable; whether its message is over."""
        spool_id, number = queue_id = settlement.queue_id
        self.unask(queue_id)
        young = self.young.messages.get(spool_id)
        entry = young.entries.get(number) if young is not None else None
        if young is not None and entry is not None:
            if settlement.area is not None:
                self.young.settle(young, number, successor_of(entry, settlement, settlement.area), now)
                return False
            is_last = self.young.settle(young, number, None, now)
            if young.is_in_silo:
                return self.release.entry_is_over(young.message, number)
            if is_last:
                self.forget_content(young)
                moving = self._moving()
                if spool_id in self._in_vain and (moving is None or queue_id not in moving.entries):
                    self.release.remove_written(spool_id, self._in_vain.pop(spool_id))
            return is_last
        resting = self.resting.settle(queue_id)
        if resting is None:
            return False
        self.young.unpark(spool_id)
        if settlement.area is None:
            return self.release.entry_is_over(resting.message, number)
        self.release.count_line(resting.message)
        if young is None:
            young = JournaledMessage(resting.message)
            young.is_in_silo = True
            self.young.add(young, now)
        self.young.put(young, successor_of(resting.entry, settlement, settlement.area), now)
        return False

    def unask(self, queue_id: QueueId) -> None:
        left = self.asked[queue_id] - 1
        if left:
            self.asked[queue_id] = left
        else:
            del self.asked[queue_id]
            self._ending.discard(queue_id)

    def refuse(self, settlement: Settlement) -> None:
        """It has failed, and never was."""
        queue_id = settlement.queue_id
        self.unask(queue_id)
        if settlement.area is None:
            self._ending.discard(queue_id)
        moving = self._moving()
        if moving is not None and not moving.is_sealed and queue_id in moving.late and queue_id not in self.asked:
            young = self.young.messages.get(queue_id.spool_id)
            if young is not None and young.entries.get(queue_id.number) is moving.entries[queue_id]:
                moving.late.discard(queue_id)

    def abandon_moves(self, moving: PendingCheckpoint) -> None:
        """A checkpoint came to nothing (`apply.EntryMover`): of messages that are over meanwhile nothing is left."""
        self._in_vain |= moving.contents
        for spool_id in [spool_id for spool_id in self._in_vain if spool_id not in self.young.messages]:
            self.release.remove_written(spool_id, self._in_vain.pop(spool_id))

    def move_entries(self, moving: PendingCheckpoint, queue_ids: Sequence[QueueId]) -> None:
        """A checkpoint is durable (`apply.EntryMover`): these of what it moved rest, but for what was settled meanwhile."""
        index, resting = self.young, self.resting
        for queue_id in queue_ids:
            spool_id, number = queue_id
            entry, place = moving.entries[queue_id], moving.places[queue_id]
            cluster = resting.clusters[place.cluster]
            young = index.messages.get(spool_id)
            is_live = young is not None and young.entries.get(number) is entry
            if young is not None and is_live:
                self.release.count_line(young.message)
            if spool_id not in moving.met:
                moving.met.add(spool_id)
                self._on_written(moving, spool_id, young)
            if young is None or not is_live:
                resting.owe(cluster, place.offset)
                if moving.contents.get(spool_id) and (young is None or number not in young.entries):
                    self.release.remove_name(spool_id, number)  # it was settled while the content was written
                continue
            if number in young.out or queue_id in self.asked:
                resting.hold(ClusteredEntry(young.message, entry, cluster, place.offset))
            else:
                line = FoundLine(place.offset, False, young.message, entry)
                if queue_id in index.given_back:
                    resting.stay(cluster, line, index.given_back[queue_id])
                else:
                    resting.arrive(cluster, line, moving.now)
            index.move(young, number)
        self._woken()

    def _on_written(self, moving: PendingCheckpoint, spool_id: SpoolId, young: JournaledMessage | None) -> None:
        """The message's content has been written behind, or was in its silo already."""
        self._in_vain.pop(spool_id, None)
        if young is None:
            if moving.contents.get(spool_id) == 0:
                self.release.remove(spool_id)  # all of it was settled while its content was written
        elif not young.is_in_silo:
            self.release.track(young.message, len(young.entries))
            self.forget_content(young)
            young.is_in_silo = True

    def hold_content(self, young: JournaledMessage) -> None:
        """Keep the content in memory while there is room."""
        content = young.content
        if content is not None:
            if self._contents.has_room(len(content)):
                self._contents.used += len(content)
            else:
                young.leave_content(content)

    def forget_content(self, young: JournaledMessage) -> None:
        content, young.content = young.content, None
        if content is not None:
            self._contents.used -= len(content)


def begin_message(submission: Submission, draft: SpoolDraft) -> tuple[JournaledMessage, list[Entry]]:
    """The message and the entries that a submission makes."""
    envelope, received_at = submission.envelope, submission.received_at
    recipients = envelope.recipients
    message = Message(
        draft.spool_id,
        envelope.sender,
        envelope.client,
        envelope.eightbit,
        received_at,
        draft.stored_bytes - envelope.stuffed_dots,
        len(recipients),
        [],
        envelope.stuffed_dots,
    )
    young = JournaledMessage(message)
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


def successor_of(entry: Entry, settlement: Settlement, area: Area) -> Entry:
    """The entry as it goes on."""
    return Entry(
        entry.number, entry.recipient, area, settlement.due_at, settlement.attempts, settlement.reply, settlement.host
    )
