"""Replay of journal records: from the records of a journal to the live entries in it.

Two passes: the first finds the newest checkpoint, the second applies the records above its horizon. Below it there may be a
hundred times more records, all of entries that were moved or settled.

`load` only reads: it serves starts, offline commands and fsck.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt
from mailismus.journal.batch import Batch
from mailismus.journal.replay import FoundSegment, Journal, drop_explained, replay, replay_behind, survey
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import parse_line
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.format.record import (
    Record,
    RecordKind,
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

EPOCHS_A_HEADER = 2
"""How much higher the epoch of a lost header may be: a start raises it by one, a full counter of spool ids too."""


@attrs.define
class ReplayedQueue:
    """Result of a replay. `youngs` know segment and place of their content; contents are not loaded, but for the last
    batch."""

    journal: Journal
    youngs: dict[SpoolId, JournaledMessage]
    last: Batch | None = None
    """The last batch found. It may not be durable."""
    last_segment: FoundSegment | None = None
    horizon: int = 0
    """The newest checkpoint's."""
    sure_horizon: int = 0
    """The newest horizon that is durable for sure: not one in the last batch alone."""
    record_horizon: int = 0
    """The newest horizon in a checkpoint record."""
    epoch: int = 0
    checkpoint: int = 0
    """Number of the newest checkpoint. Clusters of a higher one do not count."""
    lengths: dict[ClusterId, int] = attrs.field(factory=dict)
    """Committed lengths of the clusters that were open at the newest checkpoint."""
    owed: set[Place] = attrs.field(factory=set)
    """Lines of settled entries that may not be marked as done yet."""
    settled: set[SpoolId] = attrs.field(factory=set)
    """Messages of which the current batch settled an entry. They stay until its end, entries or not: a retry of an entry in
    a cluster is a settled record and then a line, and the content may still be in the journal."""
    bad_lines: list[bytes] = attrs.field(factory=list)
    """Recipient lines and records that do not check in a batch that does."""
    has_words: bool = False
    """A recipient line behind the horizon has words: what is written anew needs a format that holds them."""
    is_doubtful: bool = False
    """The record of a durable checkpoint may be missing (`salvage`)."""

    def note_words(self) -> None:
        """Note that recipient lines written anew may have words."""
        self.has_words = True

    @property
    def last_sequence(self) -> int:
        """Of the last batch."""
        return max([self.horizon, *(segment.last_sequence for segment in self.journal.used)])


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
    found = ReplayedQueue(journal, {}, horizon=journal.horizon, sure_horizon=journal.horizon, epoch=journal.epoch)
    for segment, batch in replay(journal):
        found.sure_horizon = found.horizon
        with suppress(Corrupt):
            for record in read_records(batch.records, _BOUNDS):
                _apply(found, record, segment, batch)
        found.last, found.last_segment = batch, segment
    for segment, batch in replay_behind(journal, found.horizon):
        try:
            for record in read_records(batch.records, _ENTRIES):
                _apply(found, record, segment, batch)
        except Corrupt:
            found.bad_lines.append(batch.records)
        for spool_id in found.settled:
            if not found.youngs[spool_id].entries:
                del found.youngs[spool_id]
        found.settled.clear()
    drop_explained(journal, found.horizon)
    # The horizon in a header is that of a durable checkpoint, whose record must be in the journal.
    found.is_doubtful = journal.is_doubtful or found.record_horizon < journal.horizon
    used = max((spool_id >> 32 for spool_id in found.youngs), default=0)
    found.epoch = max(found.epoch, used) + EPOCHS_A_HEADER * journal.lost_headers
    return found


def settled_among(loaded: ReplayedQueue, wanted: Container[QueueId]) -> set[QueueId]:
    """Those of the `wanted` entries that have a settled record above the newest horizon found."""
    settled: set[QueueId] = set()
    for _, batch in replay_behind(loaded.journal, loaded.horizon):
        with suppress(Corrupt):
            for record in read_records(batch.records, _SETTLED):
                settled.update(queue_id for queue_id, _ in parse_placed(record.text) if queue_id in wanted)
    return settled


def _apply(found: ReplayedQueue, record: Record, segment: FoundSegment, batch: Batch) -> None:
    match record.kind:
        case RecordKind.CHECKPOINT:
            checkpoint = parse_checkpoint(record.text)
            if checkpoint is None:
                found.bad_lines.append(record.text)
            elif checkpoint.number >= found.checkpoint:
                found.horizon = max(found.horizon, checkpoint.horizon)
                found.record_horizon = checkpoint.horizon
                found.epoch = max(found.epoch, checkpoint.epoch)
                found.checkpoint, found.lengths = checkpoint.number, checkpoint.lengths
        case RecordKind.EPOCH:
            found.epoch = max(found.epoch, parse_epoch(record.text))
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
            found.bad_lines.append(line)
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
