"""Executor: executes the actions of a repair, each safe to be interrupted.

*Rules*: everything about entries is written to the journal, in batches of its own in fresh segments. A line that is
rewritten and the mark of the old one are one batch, so that an interrupted repair has done both or neither; a start that
reads this batch reads all others. Records that are written twice do no harm.

*Not here*: changes of files (`queue.fsck.files`).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt, Unavailable
from mailismus.journal.batch import padded_size
from mailismus.journal.opening import JournalOpener, OpenJournal, Reuse
from mailismus.queue.files.recipient_line import LIVE, format_lines, parse_line
from mailismus.queue.fsck.files import LOST_REPLY, RepairFiles
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.checkpoint.cleanup import NOBODY
from mailismus.queue.providers.clustered.format.cluster import SUFFIX as CLUSTER_SUFFIX
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place
from mailismus.queue.providers.clustered.format.record import (
    FORMAT_WITH_WORDS,
    Checkpoint,
    checkpoint_record,
    epoch_record,
    lines_record,
    places_record,
    settled_record,
)
from mailismus.queue.providers.clustered.fsck.evidence.bad_lines import LONGEST
from mailismus.queue.providers.clustered.fsck.evidence.live_entries import LiveEntry
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue

BATCH_BYTES = 256 << 10
"""Bytes of records in one batch, about."""


class RepairExecutor(RepairFiles):
    """Executes the actions of one repair. The locks of the queue are held."""

    def __init__(self, disk: IDisk, queue_path: str, spool_path: str, opener: JournalOpener, now: float) -> None:
        """`opener`: of the queue's journal. `now`: UTC seconds."""
        super().__init__(disk, queue_path, spool_path, CLUSTER_SUFFIX)
        self._opener = opener
        self._now = now
        self.loaded: ReplayedQueue | None = None
        """The replayed journal, with its patches applied."""
        self._journal: OpenJournal | None = None
        self._records: list[bytes] = []
        self._records_size = 0

    def say_checkpoint(self, checkpoint: Checkpoint, over: Sequence[Place]) -> None:
        """Record a checkpoint: clusters count as it says, but for the lines at the places in `over`."""
        self._say(checkpoint_record(checkpoint) + places_record([(NOBODY, place) for place in over]))
        self.flush()

    def say_epoch(self, epoch: int) -> None:
        """Record that epochs up to this one have been used."""
        self._say(epoch_record(epoch))

    def mark(self, line: LiveEntry) -> None:
        """Mark a line as done; its entry may live in another line."""
        self._keep_line(line)
        self._say(places_record([(line.queue_id, _place(line))]))

    def end(self, line: LiveEntry) -> None:
        """Settle an entry."""
        if line.source.cluster is None:
            self._say(settled_record([(line.queue_id, None)]))
        else:
            self._keep_line(line)
            self._say(settled_record([(line.queue_id, _place(line))]))

    def move(self, line: LiveEntry) -> None:
        """Rewrite a line where it belongs."""
        message, entry = self._read(line)
        self._say_again(line, message, entry)

    def bounce(self, line: LiveEntry) -> None:
        """Make a bounce of an entry whose message is lost."""
        message, entry = self._read(line)
        entry = attrs.evolve(entry, area=Area.BOUNCES, due_at=self._now, reply=LOST_REPLY, host=b"-")
        self._say_again(line, message, entry)

    def _say_again(self, line: LiveEntry, message: Message, entry: Entry) -> None:
        if message.words is not None or entry.words is not None:
            self._loaded.note_words()
            if self._journal is not None:
                self._journal.writer.require_format(FORMAT_WITH_WORDS)
        records = [lines_record(entry.area, message.spool_id, format_lines(message, [entry]))]
        if line.source.cluster is not None:
            records.insert(0, places_record([(line.queue_id, _place(line))]))
        self._say(b"".join(records))

    def _keep_line(self, line: LiveEntry) -> None:
        self.quarantine.keep(line.source.path, line.offset, len(self._bytes_of(line)))

    def _bytes_of(self, line: LiveEntry) -> bytes:
        """The bytes of a line up to its LF, or up to the end of its source."""
        end = line.source.end
        file = self._disk.open(line.source.path)
        try:
            size = LONGEST if end is None else min(LONGEST, end - line.offset)
            return file.read_at(line.offset, size).partition(b"\n")[0]
        finally:
            file.close()

    def _read(self, line: LiveEntry) -> tuple[Message, Entry]:
        if line.source.is_journal:
            young = self._loaded.youngs[line.queue_id.spool_id]
            return young.message, young.entries[line.queue_id.number]
        if line.source.history is not None:
            found = line.source.history.line(line.offset, LONGEST)
            if found is None:
                raise Corrupt(*line.source.history.place(line.offset), "the line does not check")
            return found
        data = self._bytes_of(line)
        area = line.source.right_area or line.source.area or Area.INCOMING
        for candidate in (data, data[:-1]):  # the LF may have been overwritten
            parsed = parse_line(LIVE + candidate[1:], area)
            if parsed is not None:
                return parsed
        raise Corrupt(line.source.path, line.offset, "the line does not check any more: another process writes to this file")

    @property
    def _loaded(self) -> ReplayedQueue:
        assert self.loaded is not None
        return self.loaded

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
                # A journal that was lost must not get a batch before the one that says which clusters count.
                is_first = self._loaded.last is None
                self._begin(b"".join(records) if is_first else b"")
                if is_first:
                    return
            assert self._journal is not None
            pool, writer = self._journal.pool, self._journal.writer
            current = writer.current
            if current is None or current.room < padded_size(size) or current.format < writer.format:
                pool.ensure(padded_size(size))
            writer.append(records, size)
        except OSError as error:
            raise Unavailable(f"the journal can't be written ({error.strerror or error}); begin again") from error

    def _begin(self, beside_epoch: bytes) -> None:
        self._journal = self._opener.begin_journal(self._loaded, self._loaded, Reuse.NOTHING, beside_epoch)

    def finish(self) -> None:
        """Make everything durable, then write, move and unlink what was put off to the end."""
        if self.has_more_at_end:
            self.say_epoch(self._loaded.epoch)  # this rewrites the last batch too, which may not be durable yet
        self.flush()
        self.finish_files()

    def close(self) -> None:
        """Close the journal. Harmless when repeated."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def _place(line: LiveEntry) -> Place:
    cluster: ClusterId | None = line.source.cluster
    assert cluster is not None
    return Place(cluster, line.offset)
