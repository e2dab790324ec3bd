"""Contents of messages: from memory, copied whole from the log, or read from the spool in pieces."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import partial

from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import Corrupt, Unavailable
from mailismus.journal.segment import Segment
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.providers.log.index.working_set import LogMessage, WorkingSet
from mailismus.queue.providers.log.read.quarantine import LogDamage
from mailismus.spool.content import WholeContent, as_storage_error, open_in_silo
from mailismus.spool.quarantine import quarantine_file


class LogContents:
    """Contents of messages. `segments`: those of the log that are in use, by number."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        spool_path: str,
        worker: IWorker,
        working_set: WorkingSet,
        segments: Mapping[int, Segment],
        corrupt_path: str,
        damage: LogDamage,
    ) -> None:
        """`corrupt_path`: the directory for message files that fail their check."""
        self._damage = damage
        self._disk = disk
        self._spool_path = spool_path
        self._worker = worker
        self._working_set = working_set
        self._segments = segments
        self._corrupt_path = corrupt_path

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """As `IQueue.read`."""
        known = self._working_set.messages.get(spool_id)
        if known is None or known.is_in_silo:
            return open_in_silo(self._disk, self._spool_path, spool_id, self._worker, self._on_corrupt)
        if known.content is not None:
            return known.content
        return self.read_from_log(known).addCallback(WholeContent)

    def read_from_log(self, known: LogMessage) -> Deferred[bytes]:
        """Copy a content whole, in one call. Afterwards check that it was not moved meanwhile: its old segment may have been
        used again."""
        number, offset = known.content_segment, known.content_offset
        segment = self._segments.get(number)
        if segment is None:
            return fail(Unavailable("a message is in a segment that is gone"))
        size = known.message.stored_bytes

        def on_read(content: bytes) -> bytes | Deferred[bytes]:
            if (known.content_segment, known.content_offset) != (number, offset):
                return self.read_from_log(known)
            if len(content) != size or zlib.crc32(content) != known.checksum:
                damaged = [(offset, offset + size)]
                Deferred.fromCoroutine(self._damage.keep(segment.path, segment.file, damaged, ()))
                raise Unavailable("a message does not check in its segment: cut or overwritten there")
            return content

        read = self._worker.run(lambda: segment.file.read_at(offset, size))
        return read.addCallbacks(on_read, as_storage_error)

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
