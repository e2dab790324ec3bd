"""Contents of messages: read from the spool in pieces, or copied whole from the journal."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import Corrupt, Unavailable
from mailismus.journal.segment import Segment
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.spool.content import WholeContent, as_storage_error, open_in_silo
from mailismus.spool.quarantine import quarantine_file


class Contents:
    """Contents of messages, from the spool or the journal. `segments`: those of the journal that are in use, by number."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        spool_path: str,
        worker: IWorker,
        memtable: Memtable,
        segments: Mapping[int, Segment],
        corrupt_path: str,
    ) -> None:
        """`corrupt_path`: the directory for message files that fail their check."""
        self._disk = disk
        self._spool_path = spool_path
        self._worker = worker
        self._memtable = memtable
        self._segments = segments
        self._corrupt_path = corrupt_path

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """As `IQueue.read`."""
        journaled = self._memtable.messages.get(spool_id)
        if journaled is None or journaled.is_in_silo:
            return self._open(spool_id)
        if journaled.content is not None:
            return journaled.content
        return self._read_from_journal(journaled)

    def _open(self, spool_id: SpoolId) -> Deferred[IContent]:
        return open_in_silo(self._disk, self._spool_path, spool_id, self._worker, self._on_corrupt)

    def _on_corrupt(self, error: Corrupt) -> None:
        """Quarantine a message file that fails its check, unchanged."""
        act = partial(quarantine_file, self._disk, error.path, self._corrupt_path)
        self._worker.run(act).addCallbacks(
            self._on_quarantined, self._on_not_quarantined, callbackArgs=(error,), errbackArgs=(error,)
        )

    def _on_quarantined(self, is_new: bool, error: Corrupt) -> None:
        if is_new:
            self._log.error("{error}; set aside in {corrupt}", error=str(error), corrupt=self._corrupt_path)

    def _on_not_quarantined(self, failure: Failure, error: Corrupt) -> None:
        self._log.error("{error}; it can't be set aside: {why}", error=str(error), why=failure.value)

    def _read_from_journal(self, journaled: JournaledMessage) -> Deferred[IContent]:
        """Copy a content whole, in one call. Afterwards check that the message was not moved or rewritten meanwhile: its old
        segment may have been reused."""
        number = journaled.segment
        segment = self._segments[number]
        spool_id = journaled.message.spool_id
        offset, size = journaled.offset, journaled.message.stored_bytes

        def on_read(content: bytes) -> IContent | Deferred[IContent]:
            if journaled.is_in_silo:
                return self._open(spool_id)
            if journaled.segment != number or journaled.offset != offset:
                return self._read_from_journal(journaled)
            if not journaled.has_written(content):
                raise Unavailable("a message does not check in its journal segment: cut or overwritten there")
            return WholeContent(content)

        read = self._worker.run(lambda: segment.file.read_at(offset, size))
        return read.addCallbacks(on_read, as_storage_error)
