"""Looking at a queue that no server runs on, here or copied from elsewhere: reads, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, fail, succeed

from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Unavailable
from mailismus.journal.batch import BLOCK, decode_header
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Filter, Message, Summary
from mailismus.queue.providers.clustered.clusterfiles import find_clusters
from mailismus.queue.providers.clustered.listing import Looks
from mailismus.queue.providers.clustered.opening import index_clusters
from mailismus.queue.providers.clustered.rescue import rescue
from mailismus.queue.providers.clustered.start import load
from mailismus.queue.providers.clustered.young import YoungIndex, YoungMessage
from mailismus.spool.message_file import PIECE_SIZE, MessageFileReader, open_message

PAGE = 1000
"""Entries found at once."""

T = TypeVar("T")


class _AtOnce:
    """A worker for who has nothing else to do meanwhile."""

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        try:
            return succeed(function())
        except OSError as error:
            return fail(error)

    def stop(self) -> None:
        """Nothing is under way."""


class OfflineQueue:
    """What the files of a queue say."""

    def __init__(self, looks: Looks, young: YoungIndex, disk: IDisk, spool_path: str, segments: Mapping[int, str]) -> None:
        """`segments`: where each segment of the journal lies, by its number."""
        self._looks = looks
        self._young = young
        self._disk = disk
        self._spool_path = spool_path
        self._segments = segments

    def summary(self) -> Summary:
        """Counts of every area."""
        return _result(self._looks.summarize())

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        """All matching entries, page by page."""
        cursor: object | None = None
        while True:
            page = _result(self._looks.search(wanted, cursor, PAGE))
            yield page.messages
            cursor = page.cursor
            if cursor is None:
                return

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        """The content of a message that is here, in pieces, in order. Raises `Corrupt`, `Unavailable` or OSError."""
        young = self._young.messages.get(spool_id)
        if young is not None and not young.is_in_silo:
            return self._in_journal(young)
        try:
            reader = open_message(self._disk, self._spool_path, spool_id)
        except FileNotFoundError:
            raise Unavailable("no such message") from None
        return self._in_silo(reader)

    def _in_silo(self, reader: MessageFileReader) -> Generator[bytes, None, None]:
        try:
            while piece := reader.read():
                yield piece
        finally:
            reader.close()

    def _in_journal(self, young: YoungMessage) -> Generator[bytes, None, None]:
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
    """The queue in these directories. Raises OSError: FileNotFoundError where there is no queue."""
    disk = disk or PosixDisk(Access.READ_ONLY)
    journal_path = os.path.join(queue_path, "journal")
    if not disk.exists(journal_path):
        raise FileNotFoundError(2, "no queue is here", queue_path)
    loaded = load(disk, journal_path)
    young = YoungIndex()
    for spool_id in sorted(loaded.youngs):
        young.add(loaded.youngs[spool_id], 0.0)
    found = list(find_clusters(disk, queue_path))
    resting = index_clusters(loaded, queue_path, found, rescue(loaded, disk, queue_path, found))
    newest = max([loaded.checkpoint, *(cluster_id.checkpoint for cluster_id in resting.clusters)])
    segments = {}
    for segment in (*loaded.journal.others, *loaded.journal.used):
        segment.file.close()
        if segment.header is not None:
            segments[segment.header.number] = segment.path
    looks = Looks(disk, queue_path, _AtOnce(), young, resting, lambda: newest)
    return OfflineQueue(looks, young, disk, spool_path, segments)
