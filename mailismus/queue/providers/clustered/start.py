"""Start: what a journal says is in the queue.

`load` reads and changes nothing: it serves the server's start, and whoever only looks.
"""

from __future__ import annotations

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt
from mailismus.journal.batch import Batch
from mailismus.journal.replay import FoundSegment, Journal, drop_explained, replay, survey
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.providers.clustered.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.line import parse_line
from mailismus.queue.providers.clustered.record import (
    Record,
    RecordKind,
    parse_checkpoint,
    parse_epoch,
    parse_placed,
    read_records,
)
from mailismus.queue.providers.clustered.young import YoungMessage


@attrs.define
class Loaded:
    """What was found. `youngs` know their segment and content's place; contents are not read, but for the last batch's."""

    journal: Journal
    youngs: dict[SpoolId, YoungMessage]
    said: dict[QueueId, int]
    """Sequence number of each young entry's newest line."""
    last: Batch | None = None
    """The last batch found, whose durability nobody knows."""
    last_segment: FoundSegment | None = None
    horizon: int = 0
    """The newest checkpoint's."""
    sure_horizon: int = 0
    """The newest that is surely durable: not one that the last batch alone tells of."""
    epoch: int = 0
    checkpoint: int = 0
    """Number of the newest checkpoint: cluster files of a higher one are nothing."""
    lengths: dict[ClusterId, int] = attrs.field(factory=dict)
    """Committed lengths of the clusters that grew at the newest checkpoint."""
    owed: set[Place] = attrs.field(factory=set)
    """Lines that are over and may not be marked yet."""
    bad_lines: list[bytes] = attrs.field(factory=list)
    """Recipient lines and records that do not check though their batch does."""

    @property
    def last_sequence(self) -> int:
        """Of the last batch."""
        return max([self.horizon, *(segment.last_sequence for segment in self.journal.used)])


def load(disk: IDisk, directory: str) -> Loaded:
    """Replay the journal in this directory. Raises OSError."""
    journal = survey(disk, directory)
    found = Loaded(journal, {}, {}, horizon=journal.horizon, sure_horizon=journal.horizon, epoch=journal.epoch)
    for segment, batch in replay(journal):
        found.sure_horizon = found.horizon
        try:
            for record in read_records(batch.records):
                _apply(found, record, segment, batch)
        except Corrupt:
            found.bad_lines.append(batch.records)
        found.last, found.last_segment = batch, segment
    _drop_moved(found)
    drop_explained(journal, found.horizon)
    return found


def _drop_moved(found: Loaded) -> None:
    """What was last said before the newest checkpoint's horizon rests; the content of what was begun there too."""
    for young in list(found.youngs.values()):
        spool_id = young.message.spool_id
        for number in [n for n in young.entries if found.said[QueueId(spool_id, n)] <= found.horizon]:
            del young.entries[number]
        if not young.entries:
            del found.youngs[spool_id]
        elif young.begun <= found.horizon:
            young.is_in_silo = True


def _apply(found: Loaded, record: Record, segment: FoundSegment, batch: Batch) -> None:
    match record.kind:
        case RecordKind.CHECKPOINT:
            checkpoint = parse_checkpoint(record.text)
            if checkpoint is None:
                found.bad_lines.append(record.text)
            elif checkpoint.number >= found.checkpoint:
                found.horizon = max(found.horizon, checkpoint.horizon)
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


def _settle(found: Loaded, queue_id: QueueId, place: Place | None) -> None:
    if place is not None:
        found.owed.add(place)
    young = found.youngs.get(queue_id.spool_id)
    if young is not None:
        young.entries.pop(queue_id.number, None)
        if not young.entries:
            del found.youngs[queue_id.spool_id]


def _put_lines(found: Loaded, record: Record, segment: FoundSegment, batch: Batch) -> None:
    assert segment.header is not None
    for line in record.text.split(b"\n")[:-1]:
        parsed = parse_line(line, record.area) if record.area is not None else None
        if parsed is None or parsed[0].spool_id != record.spool_id:
            found.bad_lines.append(line)
            continue
        message, entry = parsed
        young = found.youngs.get(record.spool_id)
        if young is None:
            young = found.youngs[record.spool_id] = YoungMessage(message)
            young.is_in_silo = True  # until a record says that it is not
        young.entries[entry.number] = entry
        found.said[QueueId(record.spool_id, entry.number)] = batch.sequence
    if record.kind is RecordKind.MESSAGE and record.spool_id in found.youngs:
        young = found.youngs[record.spool_id]
        young.is_in_silo = False
        young.segment = segment.header.number
        young.offset = batch.records_offset + record.content_offset
        young.begun = batch.sequence
