"""Reading contents: of a message in its silo piece by piece, of a young one copied whole out of the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import Corrupt, Unavailable
from mailismus.journal.segment import Segment
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import IContent
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.spool.message_file import MessageFileReader, open_message
from mailismus.spool.quarantine import quarantine_file


class WholeContent:
    """`IContent` of bytes that are at hand."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.stored_bytes = len(content)

    def next(self) -> Deferred[bytes]:
        piece, self._content = self._content[:65536], self._content[65536:]
        return succeed(piece)

    def close(self) -> None:
        self._content = b""


class SiloContent:
    """`IContent` of a message file that is held open: it can be read to its end even when it is removed meanwhile."""

    def __init__(self, reader: MessageFileReader, worker: IWorker, is_corrupt: Callable[[Corrupt], None]) -> None:
        """`is_corrupt` is told when it does not check."""
        self._on_corrupt = is_corrupt
        self._reader = reader
        self._worker = worker
        self.stored_bytes = reader.size_bytes
        self._is_busy = False
        self._is_closed = False

    def next(self) -> Deferred[bytes]:
        self._is_busy = True
        piece = self._worker.run(self._reader.read)
        piece.addBoth(self._on_read)
        return piece.addErrback(as_storage_error, self._on_corrupt)

    def _on_read(self, result: bytes | Failure) -> bytes | Failure:
        self._is_busy = False
        if self._is_closed:
            self._reader.close()
        return result

    def close(self) -> None:
        self._is_closed = True
        if not self._is_busy:
            self._reader.close()


SMALL = 65536
"""Bytes of a message file that are read in one act."""


def open_in_silo(
    disk: IDisk, root: str, spool_id: SpoolId, worker: IWorker, is_corrupt: Callable[[Corrupt], None]
) -> Deferred[IContent]:
    """Open a message file; a small one is read at once. Fails with `Corrupt` or `Unavailable`."""

    def act() -> IContent:
        reader = open_message(disk, root, spool_id)
        if reader.size_bytes > SMALL:
            return SiloContent(reader, worker, is_corrupt)
        try:
            return WholeContent(reader.read())
        finally:
            reader.close()

    return worker.run(act).addErrback(as_storage_error, is_corrupt)


def as_storage_error(failure: Failure, is_corrupt: Callable[[Corrupt], None] | None = None) -> Failure:
    """An OSError as what the seam knows; `is_corrupt` is told of bytes that do not check."""
    if isinstance(failure.value, Corrupt) and is_corrupt is not None:
        is_corrupt(failure.value)
    if isinstance(failure.value, OSError):
        return Failure(Unavailable(f"a message can't be read: {failure.value}"))  # type: ignore[no-untyped-call]  # Twisted's
    return failure


class Contents:
    """Contents of messages, wherever they are. `segments`: those of the journal that are in use, by number."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        spool_path: str,
        worker: IWorker,
        young: Memtable,
        segments: Mapping[int, Segment],
        corrupt_path: str,
    ) -> None:
        """`corrupt_path`: where message files that do not check are set aside."""
        self._disk = disk
        self._spool_path = spool_path
        self._worker = worker
        self._young = young
        self._segments = segments
        self._corrupt_path = corrupt_path

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """As `IQueue.read`."""
        young = self._young.messages.get(spool_id)
        if young is None or young.is_in_silo:
            return self._open(spool_id)
        if young.content is not None:
            return young.content
        return self._read_from_journal(young)

    def _open(self, spool_id: SpoolId) -> Deferred[IContent]:
        return open_in_silo(self._disk, self._spool_path, spool_id, self._worker, self._on_corrupt)

    def _on_corrupt(self, error: Corrupt) -> None:
        """A message file does not check: it is set aside as it is, whatever becomes of the message."""
        act = partial(quarantine_file, self._disk, error.path, self._corrupt_path)
        self._worker.run(act).addCallbacks(
            self._on_quarantined, self._not_set_aside, callbackArgs=(error,), errbackArgs=(error,)
        )

    def _on_quarantined(self, is_new: bool, error: Corrupt) -> None:
        if is_new:
            self._log.error("{error}; set aside in {corrupt}", error=str(error), corrupt=self._corrupt_path)

    def _not_set_aside(self, failure: Failure, error: Corrupt) -> None:
        self._log.error("{error}; it can't be set aside: {why}", error=str(error), why=failure.value)

    def _read_from_journal(self, young: JournaledMessage) -> Deferred[IContent]:
        """Copied whole in one act. Whether the message was written behind, or said again elsewhere, meanwhile is looked at
        afterwards, for its old segment may have been used anew."""
        number = young.segment
        segment = self._segments[number]
        spool_id = young.message.spool_id
        offset, size = young.offset, young.message.stored_bytes

        def on_read(content: bytes) -> IContent | Deferred[IContent]:
            if young.is_in_silo:
                return self._open(spool_id)
            if young.segment != number or young.offset != offset:
                return self._read_from_journal(young)
            if not young.has_written(content):
                raise Unavailable("a message does not check in its journal segment: cut or overwritten there")
            return WholeContent(content)

        read = self._worker.run(lambda: segment.file.read_at(offset, size))
        return read.addCallbacks(on_read, as_storage_error)
