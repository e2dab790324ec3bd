"""Replay of journal records: from the records of a journal to the live entries in it.

*Not here*: the two passes (`journal.load`).
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt
from mailismus.journal.batch import Batch
from mailismus.journal.load import ReplayedJournal, load_into
from mailismus.journal.replay import FoundSegment, Journal, replay_behind, survey
from mailismus.journal.writer import Written
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import parse_line
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.format.record import (
    FORMAT_WITH_WORDS,
    Record,
    RecordKind,
    epoch_record,
    parse_checkpoint,
    parse_epoch,
    parse_placed,
    read_records,
)
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage

_BOUNDS = b"CE"
"""Kinds of records without entries: checkpoints and epochs."""
_ENTRIES = b"MFLSP"
"""All other kinds."""
_SETTLED = b"S"


@attrs.define
class ReplayedQueue(ReplayedJournal):
    """Result of a replay. `youngs` know segment and place of their content; contents are not loaded, but for the last
    batch."""

    youngs: dict[SpoolId, JournaledMessage] = attrs.field(factory=dict)
    checkpoint: int = 0
    """Number of the newest checkpoint. Clusters of a higher one do not count."""
    lengths: dict[ClusterId, int] = attrs.field(factory=dict)
    """Committed lengths of the clusters that were open at the newest checkpoint."""
    owed: set[Place] = attrs.field(factory=set)
    """Lines of settled entries that may not be marked as done yet."""
    settled: set[SpoolId] = attrs.field(factory=set)
    """Messages of which the current batch settled an entry. They stay until its end, entries or not: a retry of an entry in
    a cluster is a settled record and then a line, and the content may still be in the journal."""

    def note_words(self) -> None:
        """Note that recipient lines written anew may have words."""
        self.require_format(FORMAT_WITH_WORDS)

    # `ReplaySink`

    def read_bounds(self, batch: Batch) -> None:
        with suppress(Corrupt):
            for record in read_records(batch.records, _BOUNDS):
                _note_bound(self, record)

    def apply(self, segment: FoundSegment, batch: Batch) -> None:
        try:
            for record in read_records(batch.records, _ENTRIES):
                _apply(self, record, segment, batch)
        except Corrupt:
            self.bad_records.append(batch.records)
        for spool_id in self.settled:
            if not self.youngs[spool_id].entries:
                del self.youngs[spool_id]
        self.settled.clear()

    def highest_epoch(self) -> int:
        return max((spool_id >> 32 for spool_id in self.youngs), default=0)

    # `JournalOwner`

    def epoch_record(self, epoch: int) -> bytes:
        return epoch_record(epoch)

    def last_batch_moved(self, written: Written) -> None:
        last, last_segment = self.last, self.last_segment
        assert last is not None
        assert last_segment is not None
        assert last_segment.header is not None
        number = last_segment.header.number
        for young in self.youngs.values():
            if young.segment == number and young.offset >= last.records_offset:
                young.move_to(written.segment, young.offset + written.offset - last.records_offset)


def load(disk: IDisk, directory: str) -> ReplayedQueue:
    """Replay the journal in this directory. Raises OSError."""
    journal = survey(disk, directory)
    try:
        return load_journal(journal)
    except BaseException:
        journal.close()
        raise


def load_journal(journal: Journal) -> ReplayedQueue:
    """Replay this journal. Raises OSError."""
    found = ReplayedQueue(journal)
    load_into(found, found)
    return found


def settled_among(loaded: ReplayedQueue, wanted: Container[QueueId]) -> set[QueueId]:
    """Those of the `wanted` entries that have a settled record above the newest horizon found."""
    settled: set[QueueId] = set()
    for _, batch in replay_behind(loaded.journal, loaded.horizon):
        with suppress(Corrupt):
            for record in read_records(batch.records, _SETTLED):
                settled.update(queue_id for queue_id, _ in parse_placed(record.text) if queue_id in wanted)
    return settled


def _note_bound(found: ReplayedQueue, record: Record) -> None:
    match record.kind:
        case RecordKind.CHECKPOINT:
            checkpoint = parse_checkpoint(record.text)
            if checkpoint is None:
                found.bad_records.append(record.text)
            elif checkpoint.number >= found.checkpoint:
                found.note_checkpoint(checkpoint.horizon, checkpoint.epoch)
                found.checkpoint, found.lengths = checkpoint.number, checkpoint.lengths
        case RecordKind.EPOCH:
            found.note_epoch(parse_epoch(record.text))


def _apply(found: ReplayedQueue, record: Record, segment: FoundSegment, batch: Batch) -> None:
    match record.kind:
        case RecordKind.PLACES:
            found.owed.update(place for _, place in parse_placed(record.text) if place is not None)
        case RecordKind.SETTLED:
            for queue_id, place in parse_placed(record.text):
                _settle(found, queue_id, place)
        case RecordKind.MESSAGE | RecordKind.FILE | RecordKind.LINES:
            _put_lines(found, record, segment, batch)


def _settle(found: ReplayedQueue, queue_id: QueueId, place: Place | None) -> None:
    if place is not None:
        found.owed.add(place)
    young = found.youngs.get(queue_id.spool_id)
    if young is not None:
        young.entries.pop(queue_id.number, None)
        found.settled.add(queue_id.spool_id)


def _put_lines(found: ReplayedQueue, record: Record, segment: FoundSegment, batch: Batch) -> None:
    assert segment.header is not None
    for line in record.text.split(b"\n")[:-1]:
        parsed = parse_line(line, record.area) if record.area is not None else None
        if parsed is None or parsed[0].spool_id != record.spool_id:
            found.bad_records.append(line)
            continue
        message, entry = parsed
        if message.words is not None or entry.words is not None:
            found.note_words()
        young = found.youngs.get(record.spool_id)
        if young is None:
            young = found.youngs[record.spool_id] = JournaledMessage(message)
            young.put_in_silo()  # a checkpoint moved it there, unless a record above the horizon holds the content
        young.entries[entry.number] = entry
    if record.kind is RecordKind.MESSAGE and record.spool_id in found.youngs:
        young = found.youngs[record.spool_id]
        young.put_in_journal(segment.header.number, batch.records_offset + record.content_offset)
        end = record.content_offset + record.content_size
        young.leave_content(memoryview(batch.records)[record.content_offset : end])
