"""Looking at a queue that no server runs on, here or copied from elsewhere: reads, and changes nothing.

*Rules*: what can't be read is passed over and told as a gap, so that the rest is seen. Where a segment of the journal can't
be, that what it says is missing may show entries that are over, and hide others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred, fail, succeed

from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Unavailable
from mailismus.journal.batch import BLOCK, decode_header
from mailismus.journal.lenient import survey_leniently
from mailismus.mail.ids import SpoolId
from mailismus.queue.gaps import Gaps, gap_of
from mailismus.queue.interface import Filter, Gap, Message, Summary
from mailismus.queue.providers.clustered.format.cluster import ClusterId
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.queue.providers.clustered.read.cluster_reader import ClusterReader
from mailismus.queue.providers.clustered.read.search import QueueSearch
from mailismus.queue.providers.clustered.recovery.cluster_files import find_clusters
from mailismus.queue.providers.clustered.recovery.newer_formats import refuse_newer_queue
from mailismus.queue.providers.clustered.recovery.opening import index_clusters
from mailismus.queue.providers.clustered.recovery.replay import load_journal
from mailismus.queue.providers.clustered.recovery.salvage import salvage
from mailismus.spool.message_file import PIECE_SIZE, open_message

PAGE = 1000
"""Entries found at once."""

T = TypeVar("T")


class _AtOnce:
    """A worker for who has nothing else to do meanwhile."""

    def start(self) -> None:
        """There is no thread."""

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        try:
            return succeed(function())
        except OSError as error:
            return fail(error)

    def stop(self) -> None:
        """Nothing is under way."""

    def leave(self) -> None:
        """Nothing is under way."""


class OfflineQueue:
    """What the files of a queue say."""

    def __init__(
        self,
        looks: QueueSearch,
        young: Memtable,
        disk: IDisk,
        spool_path: str,
        segments: Mapping[int, str],
        gaps: Gaps,
    ) -> None:
        """`segments`: where each segment of the journal lies, by its number; `gaps`: what could not be read so far."""
        self._gaps = gaps
        self._looks = looks
        self._young = young
        self._disk = disk
        self._spool_path = spool_path
        self._segments = segments

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be read so far."""
        return self._gaps.all()

    def summary(self) -> Summary:
        """Counts of every area."""
        summary = _result(self._looks.summarize())
        self._gaps.add(summary.gaps)
        return attrs.evolve(summary, exact=not self._gaps, gaps=self.gaps)

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        """All matching entries, page by page."""
        cursor: object | None = None
        while True:
            page = _result(self._looks.search(wanted, cursor, PAGE))
            self._gaps.add(page.gaps)
            yield page.messages
            cursor = page.cursor
            if cursor is None:
                return

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        """The content of a message that is here, in pieces, in order. Raises `Corrupt` or `Unavailable`."""
        young = self._young.messages.get(spool_id)
        try:
            yield from self._in_silo(spool_id) if young is None or young.is_in_silo else self._in_journal(young)
        except OSError as error:
            raise Unavailable(f"a message can't be read: {error}") from None

    def _in_silo(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        reader = open_message(self._disk, self._spool_path, spool_id)
        try:
            while piece := reader.read():
                yield piece
        finally:
            reader.close()

    def _in_journal(self, young: JournaledMessage) -> Generator[bytes, None, None]:
        """Whether the segment has been used anew meanwhile, by a server that was started, is looked at behind each piece."""
        path = self._segments[young.segment]
        offset, end = young.offset, young.offset + young.message.stored_bytes
        file = self._disk.open(path)
        try:
            while offset < end:
                piece = file.read_at(offset, min(PIECE_SIZE, end - offset))
                header = decode_header(file.read_at(0, BLOCK))
                if not piece or header is None or header.number != young.segment:
                    raise Unavailable("the journal has changed since it was read: does a server run on it now?")
                offset += len(piece)
                yield piece
        finally:
            file.close()

    def close(self) -> None:
        """Nothing is held open."""


def _result(coroutine: Coroutine[Deferred[Any], Any, T]) -> T:
    """Of what never waits."""
    results: list[T] = []
    errors: list[BaseException] = []
    Deferred.fromCoroutine(coroutine).addCallbacks(
        results.append, lambda failure: errors.append(failure.value or RuntimeError())
    )
    if errors:
        raise errors[0]
    return results[0]


def open_readonly(queue_path: str, spool_path: str, disk: IDisk | None = None) -> OfflineQueue:
    """The queue in these directories. Raises `NewerFormat`, or OSError: FileNotFoundError where there is no queue."""
    gaps = Gaps()

    def not_read(what: str, path: str, error: OSError) -> None:
        gaps.add((gap_of(what, path, error),))

    disk = disk or PosixDisk(Access.READ_ONLY)
    journal_path = os.path.join(queue_path, "journal")
    if not disk.exists(journal_path):
        raise FileNotFoundError(2, "no queue is here", queue_path)
    refuse_newer_queue(disk, queue_path)
    loaded = load_journal(survey_leniently(disk, journal_path, partial(not_read, "journal segment")))
    loaded.is_doubtful = loaded.is_doubtful or bool(gaps)
    young = Memtable()
    for spool_id in sorted(loaded.youngs):
        young.add(loaded.youngs[spool_id], 0.0)
    found = list(find_clusters(disk, queue_path, None, partial(not_read, "directory")))

    def not_rescued(cluster_id: ClusterId, error: OSError) -> None:
        if cluster_id.checkpoint > loaded.checkpoint:  # else it is in the index, and told of when it is looked at
            not_read("cluster", cluster_id.path(queue_path), error)

    resting = index_clusters(loaded, queue_path, found, salvage(loaded, disk, queue_path, found, not_rescued))
    newest = max([loaded.checkpoint, *(cluster_id.checkpoint for cluster_id in resting.clusters)])
    segments = {}
    for segment in (*loaded.journal.others, *loaded.journal.used):
        segment.file.close()
        if segment.header is not None:
            segments[segment.header.number] = segment.path
    looks = QueueSearch(
        disk, queue_path, ClusterReader(_AtOnce(), resting, others_remove=True), young, resting, lambda: newest
    )
    return OfflineQueue(looks, young, disk, spool_path, segments, gaps)
