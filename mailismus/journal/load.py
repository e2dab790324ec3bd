"""Loading: the replay of a journal into the state of the provider whose records it holds.

Two passes: the first finds the newest checkpoint, the second applies the records above its horizon. Below it there may be a
hundred times more records, all of entries that were moved or settled.

Loading only reads: it serves starts, offline commands and fsck.

*Not here*: which batches count (`replay`), how a start goes on (`opening`), the meaning of records.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from mailismus.journal.batch import OLDEST_FORMAT, Batch
from mailismus.journal.replay import FoundSegment, Journal, drop_explained, replay, replay_behind

EPOCHS_A_HEADER = 2
"""How much higher the epoch of a lost header may be: a start raises it by one, a full counter of spool ids too."""


@attrs.define
class ReplayedJournal:
    """Result of a replay, as far as it is the same for every provider."""

    journal: Journal
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
    format: int = OLDEST_FORMAT
    """The lowest format of a segment that holds what may be written anew."""
    bad_records: list[bytes] = attrs.field(factory=list)
    """Records and lines that do not check in a batch that does."""
    is_doubtful: bool = False
    """The record of a durable checkpoint may be missing."""

    @property
    def last_sequence(self) -> int:
        """Of the last batch."""
        return max([self.horizon, *(segment.last_sequence for segment in self.journal.used)])

    def note_checkpoint(self, horizon: int, epoch: int) -> None:
        """Note a checkpoint record that is newer than those before it."""
        self.horizon = max(self.horizon, horizon)
        self.record_horizon = horizon
        self.note_epoch(epoch)

    def note_epoch(self, epoch: int) -> None:
        """Note an epoch whose spool ids may have been used."""
        self.epoch = max(self.epoch, epoch)

    def require_format(self, number: int) -> None:
        """Note that what is written anew needs segments of this format or a newer one."""
        self.format = max(self.format, number)


class ReplaySink(Protocol):
    """A provider's reading of its records. Records that do not check are noted (`ReplayedJournal.bad_records`); nothing is
    raised for them."""

    def read_bounds(self, batch: Batch) -> None:
        """Note checkpoints and epochs in a batch. First pass: all batches that count, in order."""

    def apply(self, segment: FoundSegment, batch: Batch) -> None:
        """Apply a batch to the state. Second pass: the batches above the newest horizon, in order."""

    def highest_epoch(self) -> int:
        """The highest epoch of a spool id in the state; 0: there is none. Asked after both passes."""


def load_into(found: ReplayedJournal, sink: ReplaySink) -> None:
    """Replay a journal of which only the segments are known yet. Raises OSError."""
    journal = found.journal
    found.note_epoch(journal.epoch)
    found.horizon = found.sure_horizon = journal.horizon
    for segment, batch in replay(journal):
        found.sure_horizon = found.horizon
        sink.read_bounds(batch)
        found.last, found.last_segment = batch, segment
    for segment, batch in replay_behind(journal, found.horizon):
        sink.apply(segment, batch)
    drop_explained(journal, found.horizon)
    # The horizon in a header is that of a durable checkpoint, whose record must be in the journal.
    found.is_doubtful = journal.is_doubtful or found.record_horizon < journal.horizon
    found.epoch = max(found.epoch, sink.highest_epoch()) + EPOCHS_A_HEADER * journal.lost_headers
