"""A new clustered queue from messages of another one (`IQueueBuilder`): as a stop behind a checkpoint of all leaves it.

add     message file (with a name for each live recipient, where hard links are used), lines in clusters by area and slot
finish  a journal of two batches: the epoch, then the record of checkpoint 1, which the clusters belong to; the mark
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.journal.batch import BLOCK
from mailismus.journal.build import JournalBuilder
from mailismus.journal.segment import segment_size_for
from mailismus.journal.writer import RandomBytes
from mailismus.queue.files.mark import Mark, write_mark
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Message
from mailismus.queue.provider import QueueRoom
from mailismus.queue.providers.clustered.checkpoint.write import CheckpointWriter, OpenCluster
from mailismus.queue.providers.clustered.format.record import Checkpoint, checkpoint_record, epoch_record
from mailismus.queue.providers.clustered.format.version import FORMATS, NAME
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint
from mailismus.queue.providers.clustered.recovery.directories import make_queue
from mailismus.spool.message_file import TRAILER_SIZE, MessageFileWriter

_NUMBER = 1
"""Of the checkpoint."""
_NAME_BYTES = 64
"""Bytes of a name in a directory, at most."""
_DIRECTORIES = 48
"""Directories of a queue and its spool, at most, but for slots."""


class ClusteredBuilder:
    """`IQueueBuilder`."""

    def __init__(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float, random_bytes: RandomBytes) -> None:
        self._settings, self._disk, self._epoch = settings, disk, epoch
        journal, root = settings.journal, settings.rootpath
        size = segment_size_for(journal.segmentsize, journal.maxsize, disk.space(root).size_bytes)
        self._segment_bytes = size
        directory = os.path.join(root, "journal")
        self._journal = JournalBuilder(disk, directory, size, epoch, random_bytes, has_marks=False)
        self._lines = CheckpointWriter(disk, root, settings.spool.rootpath, settings.maxclustersize)
        self._pending = PendingCheckpoint(_NUMBER, 1, now)
        self._grows: dict[tuple[Area, str], OpenCluster] = {}

    @property
    def room(self) -> QueueRoom:
        return QueueRoom(self._segment_bytes + _DIRECTORIES * BLOCK, _DIRECTORIES, _DIRECTORIES * BLOCK, _DIRECTORIES)

    def room_of(self, message: Message) -> QueueRoom:
        lines = format_lines(message, message.entries)
        names = len(message.entries) if self._has_names(message) else 1
        file_bytes = -(-(message.stored_bytes + TRAILER_SIZE) // BLOCK) * BLOCK
        return QueueRoom(2 * len(lines), 0, file_bytes + names * _NAME_BYTES, 1)

    def begin(self) -> None:
        make_queue(self._settings, self._disk)

    def add(self, message: Message, content: Iterator[bytes]) -> None:
        writer = MessageFileWriter(self._disk, self._settings.spool.rootpath, message.spool_id)
        for piece in content:
            writer.append([piece])
        writer.close_unsynced([entry.number for entry in message.entries] if self._has_names(message) else ())
        pending = self._pending
        self._lines.write_lines(pending, [(message, entry) for entry in message.entries], self._grows)
        for kept in (pending.places, pending.lines, pending.files, pending.directories):
            kept.clear()

    def finish(self) -> None:
        lengths = {cluster.id: cluster.length for cluster in self._grows.values()}
        checkpoint = Checkpoint(self._journal.sequence + 1, self._epoch, _NUMBER, lengths)
        for record in (epoch_record(self._epoch), checkpoint_record(checkpoint)):
            self._journal.append([record], len(record))
        self._journal.finish()
        write_mark(self._disk, self._settings.rootpath, Mark(NAME, FORMATS[-1]))

    def close(self) -> None:
        self._journal.close()

    def _has_names(self, message: Message) -> bool:
        return self._settings.spool.hardlinks and message.recipient_count > 1
