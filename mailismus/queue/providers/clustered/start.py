"""Start: what a journal says is in the queue.

`load` reads and changes nothing: it serves the server's start, and whoever only looks. `SpoolIds` hands out names.
"""

from __future__ import annotations

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt
from mailismus.journal.batch import Batch
from mailismus.journal.replay import FoundSegment, Journal, drop_explained, replay, survey
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Entry
from mailismus.queue.providers.clustered.line import parse_line
from mailismus.queue.providers.clustered.record import (
    Record,
    RecordKind,
    parse_checkpoint,
    parse_settled,
    read_records,
)
from mailismus.queue.providers.clustered.young import YoungMessage


@attrs.define
class Loaded:
    """What was found. `youngs` know their segment and content's place; contents are not read, but for the last batch's."""

    journal: Journal
    youngs: dict[SpoolId, YoungMessage]
    said: dict[SpoolId, int]
    """Sequence number of each message's newest beginning."""
    last: Batch | None = None
    """The last batch found, whose durability nobody knows."""
    last_segment: FoundSegment | None = None
    horizon: int = 0
    """The newest checkpoint's."""
    sure_horizon: int = 0
    """The newest that is surely durable: not one that the last batch alone tells of."""
    epoch: int = 0
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
    for spool_id in [spool_id for spool_id, sequence in found.said.items() if sequence <= found.horizon]:
        found.youngs.pop(spool_id, None)
    drop_explained(journal, found.horizon)
    return found


def _apply(found: Loaded, record: Record, segment: FoundSegment, batch: Batch) -> None:
    kind = record.kind
    if kind is RecordKind.CHECKPOINT:
        horizon, epoch = parse_checkpoint(record.text)
        found.horizon = max(found.horizon, horizon)
        found.epoch = max(found.epoch, epoch)
    elif kind is RecordKind.SETTLED:
        for spool_id, number in parse_settled(record.text):
            young = found.youngs.get(spool_id)
            if young is not None:
                young.entries.pop(number, None)
                if not young.entries:
                    del found.youngs[spool_id]
    else:
        young = found.youngs.get(record.spool_id)
        if kind is not RecordKind.LINES:
            young = _begin(found, record, segment, batch, young)
        if young is not None:
            _put_lines(found, record, young)


def _begin(
    found: Loaded, record: Record, segment: FoundSegment, batch: Batch, young: YoungMessage | None
) -> YoungMessage | None:
    """A message begins, or is said again."""
    assert segment.header is not None
    if record.area is None:
        return None
    if young is None:
        parsed = next(filter(None, (parse_line(line, record.area) for line in record.text.split(b"\n"))), None)
        if parsed is None:
            found.bad_lines.append(record.text)
            return None
        young = found.youngs[record.spool_id] = YoungMessage(parsed[0])
    young.is_in_silo = record.kind is RecordKind.FILE
    young.segment = segment.header.number
    young.offset = batch.records_offset + record.content_offset
    found.said[record.spool_id] = batch.sequence
    return young


def _put_lines(found: Loaded, record: Record, young: YoungMessage) -> None:
    if record.area is None:
        found.bad_lines.append(record.text)
        return
    for line in record.text.split(b"\n")[:-1]:
        parsed = parse_line(line, record.area)
        if parsed is None or parsed[0].spool_id != record.spool_id:
            found.bad_lines.append(line)
        else:
            entry: Entry = parsed[1]
            young.entries[entry.number] = entry


class SpoolIds:
    """Hands out spool ids: an epoch that is durable before its first use, and a counter."""

    RESERVE_AT = 0xF000_0000
    """Counter at which the next epoch is asked for."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.reserved_epoch = epoch
        """The highest epoch that is durable."""
        self._counter = 0

    def wants_epoch(self) -> bool:
        """Whether the next epoch should be made durable now."""
        return self._counter >= self.RESERVE_AT and self.reserved_epoch == self.epoch

    def next(self) -> SpoolId | None:
        """A new one; None: the counter is full and the next epoch is not durable yet."""
        if self._counter == 0xFFFF_FFFF:
            if self.reserved_epoch == self.epoch:
                return None
            self.epoch = self.reserved_epoch
            self._counter = 0
        self._counter += 1
        return SpoolId((self.epoch << 32) | self._counter)
