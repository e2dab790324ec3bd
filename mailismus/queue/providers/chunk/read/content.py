"""Contents of messages: small new ones are at hand until they are gone, all others are read from their files in mess.

*Rules*: what is at hand is bounded; the oldest goes first. A content whose length or CRC does not check is never handed out
to its end.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger

from mailismus.disk.worker import IWorker
from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.providers.chunk.format.version import MESS
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.spool.budget import Budget
from mailismus.spool.content import SMALL, SiloContent, StoredContent, WholeContent, as_storage_error
from mailismus.spool.message_file import MessageFileReader

AT_HAND_BYTES = 32 << 20


class ChunkContents:
    """Contents of one queue. `worker` reads."""

    _log = Logger()

    def __init__(self, directories: ChunkDirectories, worker: IWorker) -> None:
        self._queue, self._worker = directories, worker
        self._at_hand: OrderedDict[SpoolId, bytes] = OrderedDict()
        self._budget = Budget(AT_HAND_BYTES)

    def remember(self, spool_id: SpoolId, content: bytes) -> None:
        """Keep the content of a new message at hand; empty: it is in its file alone."""
        if not content:
            return
        self._at_hand[spool_id] = content
        self._budget.add(len(content))
        while self._budget.is_over:
            _, oldest = self._at_hand.popitem(last=False)
            self._budget.give_back(len(oldest))

    def forget(self, spool_id: SpoolId) -> None:
        """The message is gone."""
        content = self._at_hand.pop(spool_id, None)
        if content is not None:
            self._budget.give_back(len(content))

    def read(self, spool_id: SpoolId, place: tuple[int, int] | None) -> bytes | Deferred[IContent]:
        """As `IQueue.read`. `place`: the number of the message's files, and the bytes of its content; None: it is not
        there."""
        content = self._at_hand.get(spool_id)
        if content is not None:
            return content
        if place is None:
            return fail(Unavailable(f"no message {spool_id:016X}"))
        number, stored_bytes = place
        path = self._queue.path_of(MESS, number)
        reading: Deferred[IContent] = self._worker.run(partial(self._open, path, stored_bytes))
        return reading.addErrback(as_storage_error, self._tell)

    def _open(self, path: str, stored_bytes: int) -> StoredContent:
        reader = MessageFileReader(self._queue.disk, path)
        if reader.size_bytes != stored_bytes:
            reader.close()
            raise Corrupt(path, reader.size_bytes, f"{reader.size_bytes} bytes; the envelope says {stored_bytes}")
        if reader.size_bytes > SMALL:
            return SiloContent(reader, self._worker, self._tell)
        try:
            return WholeContent(reader.read())
        finally:
            reader.close()

    def _tell(self, error: Corrupt) -> None:
        self._log.error("{error}", error=error)
