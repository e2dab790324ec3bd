"""A new log from messages of another queue (`IQueueBuilder`): what is found where no work was going on.

add     an envelope: lines and content in one record; with a large content a message file. An envelope whose lines are
        too many for a batch is written in several: the further ones refer to the content
finish  a batch of its own for the epoch, which the first start writes again; the mark
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.journal.batch import BLOCK
from mailismus.journal.build import JournalBuilder
from mailismus.journal.frame import FRAME
from mailismus.journal.segment import segment_size_for
from mailismus.journal.writer import RandomBytes, Written, most_records_size
from mailismus.queue.files.directories import make_directories
from mailismus.queue.files.mark import Mark, write_mark
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.provider import QueueRoom
from mailismus.queue.providers.log.format.record import (
    ContentPlace,
    epoch_record,
    file_record,
    interval_of,
    lines_record,
    message_head,
    replacement_record,
)
from mailismus.queue.providers.log.format.version import FORMATS, LOG, NAME
from mailismus.queue.providers.log.recovery.opening import DIRECTORIES, SEGMENTS_OF_A_JOURNAL
from mailismus.spool.message_file import TRAILER_SIZE, MessageFileWriter
from mailismus.spool.silo import SILO_NAMES

BATCH_BYTES = 1 << 20
"""Bytes of records that make a batch full."""
_NAME_BYTES = 64
"""Bytes of a name in a directory, at most."""
_DIRECTORIES = 48
"""Directories of a queue and its spool, at most."""


class LogBuilder:
    """`IQueueBuilder`."""

    def __init__(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float, random_bytes: RandomBytes) -> None:
        self._settings, self._disk, self._epoch, self._now = settings, disk, epoch, now
        wanted = settings.journal.segmentsize
        size = segment_size_for(wanted, SEGMENTS_OF_A_JOURNAL * wanted, disk.space(settings.rootpath).size_bytes)
        self._segment_bytes = size
        quarter = most_records_size(size) // 4
        self._largest_in_log = min(settings.journal.largemsgsize, quarter)
        self._most_lines = min(BATCH_BYTES, quarter)
        """Bytes of lines in one envelope."""
        self._batch_bytes = min(BATCH_BYTES, quarter)
        directory = os.path.join(settings.rootpath, LOG)
        self._log = JournalBuilder(disk, directory, size, epoch, random_bytes, has_marks=True)
        self._records: list[bytes] = []
        self._records_bytes = 0

    @property
    def room(self) -> QueueRoom:
        return QueueRoom(2 * self._segment_bytes + _DIRECTORIES * BLOCK, _DIRECTORIES, _DIRECTORIES * BLOCK, _DIRECTORIES)

    def room_of(self, message: Message) -> QueueRoom:
        lines = format_lines(message, message.entries)
        envelopes = len(lines) // self._most_lines + len(Area) + 1
        in_log = len(lines) + envelopes * 2 * FRAME.size + len(lines) // 100 + 64
        if self._is_large(message):
            file_bytes = -(-(message.stored_bytes + TRAILER_SIZE) // BLOCK) * BLOCK
            return QueueRoom(in_log, 0, file_bytes + _NAME_BYTES, 1)
        return QueueRoom(in_log + message.stored_bytes + message.stored_bytes // 100)

    def begin(self) -> None:
        make_directories(self._disk, self._settings.rootpath, DIRECTORIES)
        make_directories(self._disk, self._settings.spool.rootpath, SILO_NAMES)

    def add(self, message: Message, content: Iterator[bytes]) -> None:
        groups = list(self._groups(message))
        if self._is_large(message):
            writer = MessageFileWriter(self._disk, self._settings.spool.rootpath, message.spool_id)
            for piece in content:
                writer.append([piece])
            writer.close_unsynced()
            for group in groups:
                first = group[0]
                lines = format_lines(message, _in_area(group, first.area))
                self._put(file_record(first.area, message.spool_id, lines, self._interval(group)))
                self._put_others(message, group)
            return
        data = b"".join(content)
        first = groups[0][0]
        head = message_head(first.area, message.spool_id, format_lines(message, _in_area(groups[0], first.area)), len(data))
        if len(groups) == 1:
            self._put(head, data)
            self._put_others(message, groups[0])
        else:
            if self._records:
                self._flush()
            self._put(head, data)
            self._put_lines(message, groups[0])
            written = self._flush()
            place = ContentPlace(written.segment, written.offset + len(head), zlib.crc32(data))
            for group in groups[1:]:
                lines = format_lines(message, _in_area(group, group[0].area))
                self._put(replacement_record(group[0].area, message.spool_id, lines, place, self._interval(group)))
                self._put_others(message, group)

    def finish(self) -> None:
        if self._records:
            self._flush()
        record = epoch_record(self._epoch)
        self._log.append([record], len(record))
        self._log.finish()
        write_mark(self._disk, self._settings.rootpath, Mark(NAME, FORMATS[-1]))

    def close(self) -> None:
        self._log.close()

    def _is_large(self, message: Message) -> bool:
        return message.stored_bytes > self._largest_in_log

    def _groups(self, message: Message) -> Iterator[list[Entry]]:
        """The entries of each envelope: as many as a batch is sure to hold."""
        group: list[Entry] = []
        size_bytes = 0
        for entry in message.entries:
            line_bytes = len(format_lines(message, [entry]))
            if group and size_bytes + line_bytes > self._most_lines:
                yield group
                group, size_bytes = [], 0
            group.append(entry)
            size_bytes += line_bytes
        yield group

    def _interval(self, entries: Sequence[Entry]) -> int:
        return interval_of(min(entry.due_at for entry in entries) - self._now)

    def _put_lines(self, message: Message, entries: Sequence[Entry]) -> None:
        """Add the lines of areas other than the first entry's: they make the envelope whole."""
        for area in Area:
            here = _in_area(entries, area)
            if here and area is not entries[0].area:
                self._put(lines_record(area, message.spool_id, format_lines(message, here)))

    def _put_others(self, message: Message, entries: Sequence[Entry]) -> None:
        """As `_put_lines`, then write the batch if it is full."""
        self._put_lines(message, entries)
        if self._records_bytes >= self._batch_bytes:
            self._flush()

    def _put(self, *record: bytes) -> None:
        self._records += record
        self._records_bytes += sum(map(len, record))

    def _flush(self) -> Written:
        """Write the batch. The place is that of its first record."""
        written = self._log.append(self._records, self._records_bytes)
        self._records, self._records_bytes = [], 0
        return written


def _in_area(entries: Sequence[Entry], area: Area) -> list[Entry]:
    return [entry for entry in entries if entry.area is area]
