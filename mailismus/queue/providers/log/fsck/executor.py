"""Executor: executes the actions of a repair of a log, each safe to be interrupted.

*Rules*: everything about entries is written to the log, in batches of its own in fresh segments. An entry that is written
again and the record with which it leaves its old envelope are one batch. Records that are written twice do no harm. What
lives in a damaged segment is moved by the start at the end, which removes the segment then.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Unavailable
from mailismus.journal.batch import padded_size
from mailismus.journal.opening import JournalOpener, OpenJournal, Reuse
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.fsck.files import LOST_REPLY, RepairFiles
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.format.record import LogPlace, delivery_record, epoch_record, file_record
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope
from mailismus.queue.providers.log.recovery.replay import ReplayedLog

BATCH_BYTES = 256 << 10
"""Bytes of records in one batch, about."""

_NO_LINES = "\0"
"""No name ends so: of no file single lines are set aside."""


class LogRepairExecutor(RepairFiles):
    """Executes the actions of one repair. The locks of the queue are held. `opener`: of the log; `now`: UTC seconds."""

    def __init__(self, disk: IDisk, queue_path: str, spool_path: str, opener: JournalOpener, now: float) -> None:
        super().__init__(disk, queue_path, spool_path, _NO_LINES)
        self._opener, self._now = opener, now
        self._loaded: ReplayedLog | None = None
        self._journal: OpenJournal | None = None
        self._records: list[bytes] = []
        self._records_size = 0
        self.evacuated: set[int] = set()
        """Numbers of segments that are to be removed when all that lives there was moved."""
        self.renews = False
        """The working suffix is to begin anew: what is damaged in it must not be needed any more."""

    def know(self, loaded: ReplayedLog) -> None:
        """Note the replayed log, with its patches applied."""
        self._loaded = loaded

    def evacuate(self, segment: int) -> None:
        """Have what lives in this segment written again elsewhere, and the segment removed, at the end."""
        self.evacuated.add(segment)
        self.renews = True

    def renew(self) -> None:
        """Have envelopes with records about them written again at the end, so that the suffix begins behind all damage."""
        self.renews = True

    def end(self, place: LogPlace, spool_id: SpoolId, numbers: Sequence[int]) -> None:
        """Let these entries leave the envelope of this place."""
        self._say(delivery_record(spool_id, place, numbers))

    def bounce(self, one: FoundEnvelope) -> None:
        """Make bounces of the entries of an envelope whose content is lost; those that are bounces already stay so."""
        entries = [
            entry
            if entry.area is Area.BOUNCES
            else attrs.evolve(entry, area=Area.BOUNCES, due_at=self._now, reply=LOST_REPLY, host=b"-")
            for entry in one.entries
        ]
        spool_id = one.message.spool_id
        again = file_record(Area.BOUNCES, spool_id, format_lines(one.message, entries))
        self._say(again + delivery_record(spool_id, one.place, [entry.number for entry in entries]))

    def say_epoch(self, epoch: int) -> None:
        """Record that epochs up to this one have been used."""
        self._say(epoch_record(epoch))

    def _say(self, record: bytes) -> None:
        """Records of one call stand in one batch."""
        self._records.append(record)
        self._records_size += len(record)
        if self._records_size >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Make all records so far durable. Raises `Unavailable`: then no action that depends on them may follow."""
        if not self._records:
            return
        records: Sequence[bytes] = self._records
        size = self._records_size
        self._records, self._records_size = [], 0
        try:
            if self._journal is None:
                assert self._loaded is not None
                self._journal = self._opener.begin_journal(self._loaded, self._loaded, Reuse.NOTHING)
            pool, writer = self._journal.pool, self._journal.writer
            current = writer.current
            if current is None or current.room < padded_size(size):
                pool.ensure(padded_size(size))
            writer.append(records, size)
        except OSError as error:
            raise Unavailable(f"the log can't be written ({error.strerror or error}); begin again") from error

    def finish(self) -> None:
        """Make everything durable, then write, move and unlink what was put off to the end."""
        if self.has_more_at_end:
            assert self._loaded is not None
            self.say_epoch(self._loaded.epoch)  # this rewrites the last batch too, which may not be durable yet
        self.flush()
        self.finish_files()

    def close(self) -> None:
        """Close the log. Harmless when repeated."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
