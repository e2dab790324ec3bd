"""Looking at a queue that no server runs on, here or copied from elsewhere: reads, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.interface import Filter, Message, Summary
from mailismus.queue.providers.clustered.listing import search_page, summarize
from mailismus.queue.providers.clustered.start import load
from mailismus.queue.providers.clustered.young import YoungIndex

PAGE = 1000
"""Entries found at once."""


class OfflineQueue:
    """What the files of a queue say."""

    def __init__(self, index: YoungIndex) -> None:
        self._index = index

    def summary(self) -> Summary:
        """Counts of every area."""
        return summarize(self._index)

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        """All matching entries, page by page, in the order of their queue ids."""
        cursor: object | None = None
        while True:
            page = search_page(self._index, wanted, cursor, PAGE)
            yield page.messages
            cursor = page.cursor
            if cursor is None:
                return

    def close(self) -> None:
        """Nothing is held open."""


def open_readonly(queue_path: str, spool_path: str, disk: IDisk | None = None) -> OfflineQueue:
    """The queue in these directories. Raises OSError: FileNotFoundError where there is no queue."""
    disk = disk or PosixDisk(Access.READ_ONLY)
    journal_path = os.path.join(queue_path, "journal")
    if not disk.exists(journal_path):
        raise FileNotFoundError(2, "no queue is here", queue_path)
    loaded = load(disk, journal_path)
    index = YoungIndex()
    for spool_id in sorted(loaded.youngs):
        index.add(loaded.youngs[spool_id], 0.0)
    for segment in (*loaded.journal.used, *loaded.journal.others):
        segment.file.close()
    return OfflineQueue(index)
