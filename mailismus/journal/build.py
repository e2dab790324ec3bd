"""Building a journal that nobody uses yet: segments one after the other, batch by batch, without a barrier.

*Rules*: nothing counts before the caller has synced the file system. Segments are as long as what is in them, or as the
smallest one: a start makes its own free ones.

*Not here*: what the records mean; a journal in use (`writer`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mailismus.disk.interface import IDisk, close_read
from mailismus.journal.batch import (
    BATCH_HEAD_SIZE,
    BLOCK,
    NONCE_SIZE,
    OLDEST_FORMAT,
    SegmentHeader,
    encode_batch,
    padded_size,
)
from mailismus.journal.segment import Segment, file_name
from mailismus.journal.writer import RandomBytes, Written


class JournalBuilder:
    """Writes the batches of a new journal in an empty directory."""

    def __init__(
        self, disk: IDisk, directory: str, segment_bytes: int, epoch: int, random_bytes: RandomBytes, *, has_marks: bool
    ) -> None:
        """`segment_bytes`: of a segment, at most, unless one batch is longer. `epoch`: for the headers. `has_marks`: as for
        `JournalWriter`."""
        self._disk, self._directory, self._segment_bytes, self._epoch = disk, directory, segment_bytes, epoch
        self._random_bytes, self._has_marks = random_bytes, has_marks
        self._current: Segment | None = None
        self._number = 0
        self._sequence = 0

    @property
    def sequence(self) -> int:
        """Of the last batch; 0: there is none."""
        return self._sequence

    def append(self, records: Sequence[bytes], records_size: int) -> Written:
        """Write one batch. Durable afterwards: nothing. Raises `OSError`; then the journal is of no use."""
        size_bytes = padded_size(records_size)
        segment = self._current
        if segment is None or segment.room < size_bytes:
            segment = self._begin(BLOCK + size_bytes)
        offset = segment.end
        self._sequence += 1
        encoded = encode_batch(segment.nonce, self._sequence, records, records_size, has_marks=self._has_marks)
        segment.file.write_at(offset, encoded)
        segment.end = offset + size_bytes
        return Written(segment.number, offset + BATCH_HEAD_SIZE, self._sequence)

    def finish(self) -> None:
        """Complete the last segment. Raises `OSError`."""
        segment, self._current = self._current, None
        if segment is not None:
            try:
                segment.pad()
            finally:
                segment.file.close()

    def close(self) -> None:
        """Give up the last segment, if it is not complete. Harmless when repeated."""
        if self._current is not None:
            close_read(self._current.file)
            self._current = None

    def _begin(self, needed: int) -> Segment:
        self.finish()
        self._number += 1
        path = os.path.join(self._directory, file_name(self._number))
        segment = Segment(path, self._disk.create(path), max(self._segment_bytes, needed))
        self._current = segment
        nonce = self._random_bytes(NONCE_SIZE)
        segment.begin(SegmentHeader(self._number, self._sequence + 1, self._sequence, self._epoch, 0, nonce, OLDEST_FORMAT))
        return segment
