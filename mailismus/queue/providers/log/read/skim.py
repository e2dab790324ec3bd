"""Skimming: the records of batches without the contents between them, for looks that change nothing.

    head of a batch -> heads of its records, each where the one before ends -> texts of envelopes and their lines

A batch is skimmed where its nonce and its sequence number are those that are to stand there, and where its records fill it
exactly; its CRC is not checked, for that takes its contents. All else is read whole (`envelopes.BatchReader`). The caller
checks the lines, each by its own CRC, and has a batch read whole where one does not check (`SkimReader.again`).

*Rules*: damage in contents alone is not found here, and nothing that is found here is loaded, marked or moved. A content is
passed over on the disk where that costs less than to read it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.errors import Corrupt
from mailismus.journal.batch import BATCH_HEAD_SIZE, BLOCK, Batch, batch_head, padded_size
from mailismus.journal.frame import FRAME
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.log.format.record import (
    ENVELOPES,
    LogRecord,
    LogRecordKind,
    RecordHead,
    read_records,
    record_of,
)
from mailismus.queue.providers.log.read.envelopes import WINDOW, BatchReader, Stretch

JUMP_BYTES = 32 << 10
"""Contents from this size on are passed over. To read a smaller one costs less than a read that breaks the sequence."""

GROWTH = 2
"""The next bytes in sequence are read in a window larger by this factor, up to `WINDOW`."""

_WANTED = frozenset(kind.value for kind in (*ENVELOPES, LogRecordKind.LINES))


@attrs.frozen
class SkimmedBatch:
    """The envelopes and lines of one batch, in order. `offset`: in the file; `is_whole`: its CRC was checked; `bad`: its
    records, where they do not check in a batch that does."""

    offset: int
    sequence: int
    records: Sequence[LogRecord]
    is_whole: bool
    bad: bytes = b""

    @property
    def records_offset(self) -> int:
        """Offset of its records in the segment."""
        return self.offset + BATCH_HEAD_SIZE


class SkimReader:
    """Skims the batches of a stretch. `whole`: what is not skimmed is read by it; it knows what was passed over. `only`: the
    records of other messages may be left out."""

    def __init__(self, stretch: Stretch, only: SpoolId | None = None) -> None:
        self.whole = BatchReader(stretch)
        self._only = only
        self._stretch = stretch
        self._data, self._data_at = b"", stretch.begin
        self._window = BLOCK
        self._read_whole_at = -1

    def next(self) -> SkimmedBatch | None:
        """Return the next batch; None: there is none. Raises OSError."""
        whole, stretch = self.whole, self._stretch
        while whole.offset < stretch.end and whole.behind < stretch.last:
            skimmed = self._skim(whole.offset) if whole.offset != self._read_whole_at else None
            if skimmed is None:
                batch = whole.next()
                return _read_whole(batch) if batch is not None else None
            found, end = skimmed
            if whole.pass_over(found.sequence, end):
                return found
        return None

    def again(self, batch: SkimmedBatch) -> None:
        """Have the last batch read whole: its lines do not check."""
        self.whole.go_back(batch.offset, batch.sequence)
        self._read_whole_at = batch.offset

    def _skim(self, begin: int) -> tuple[SkimmedBatch, int] | None:
        """Skim the batch at this offset; return it and where it ends. None: not all of it is as it should be."""
        stretch = self._stretch
        at = self._have(begin, BATCH_HEAD_SIZE)
        head = batch_head(self._data, at, stretch.header.nonce)
        if head is None or not self.whole.is_next(head[0]):
            return None
        sequence, size = head
        first = begin + BATCH_HEAD_SIZE
        offset, end = first, first + size
        if end > stretch.end:
            return None
        records: list[LogRecord] = []
        while offset + FRAME.size <= end:
            at = self._have(offset, FRAME.size)
            if at + FRAME.size > len(self._data):
                return None
            frame: RecordHead = FRAME.unpack_from(self._data, at)
            text_size, content_size = frame[5], frame[6]
            following = offset + FRAME.size + text_size + content_size
            if following > end:
                return None
            if frame[0] in _WANTED and self._only in (None, frame[4]):
                at = self._have(offset + FRAME.size, text_size)
                record = record_of(frame, self._data[at : at + text_size], offset - first)
                if record is None or record.area is None or len(record.text) != text_size:
                    return None
                records.append(record)
            if content_size >= JUMP_BYTES:
                self._window = BLOCK
            offset = following
        if offset != end:
            return None
        return SkimmedBatch(begin, sequence, records, is_whole=False), begin + padded_size(size)

    def _have(self, offset: int, size: int) -> int:
        """Have so many bytes at hand, if they are there; return where they begin."""
        at = offset - self._data_at
        if at < 0 or at + size > len(self._data):
            most = max(size, min(self._window, self._stretch.end - offset))
            self._data, self._data_at = self._stretch.file.read_at(offset, most), offset
            self._window = min(WINDOW, GROWTH * self._window)
            return 0
        return at


def _read_whole(batch: Batch) -> SkimmedBatch:
    try:
        records = [record for record in read_records(batch.records) if record.kind.value in _WANTED]
    except Corrupt:
        return SkimmedBatch(batch.offset, batch.sequence, (), is_whole=True, bad=batch.records)
    return SkimmedBatch(batch.offset, batch.sequence, records, is_whole=True)
