"""Contents of messages: those in the spool piece by piece, those in the journal copied whole out of it."""

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
from mailismus.queue.interface import IContent
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.spool.content import WholeContent, as_storage_error, open_in_silo
from mailismus.spool.quarantine import quarantine_file


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
