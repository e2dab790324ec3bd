"""Reading contents: of a message in its silo piece by piece, of a young one copied whole out of the journal."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.errors import Unavailable
from mailismus.queue.interface import IContent
from mailismus.spool.message_file import MessageFileReader


class WholeContent:
    """`IContent` of bytes that are at hand."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size_bytes = len(content)

    def next(self) -> Deferred[bytes]:
        piece, self._content = self._content[:65536], self._content[65536:]
        return succeed(piece)

    def close(self) -> None:
        self._content = b""


class SiloContent:
    """`IContent` of a message file that is held open: it can be read to its end even when it is removed meanwhile."""

    def __init__(self, reader: MessageFileReader, worker: IWorker) -> None:
        self._reader = reader
        self._worker = worker
        self.size_bytes = reader.size_bytes
        self._is_busy = False
        self._is_closed = False

    def next(self) -> Deferred[bytes]:
        self._is_busy = True
        piece = self._worker.run(self._reader.read)
        piece.addBoth(self._has_read)
        return piece.addErrback(as_storage_error)

    def _has_read(self, result: bytes | Failure) -> bytes | Failure:
        self._is_busy = False
        if self._is_closed:
            self._reader.close()
        return result

    def close(self) -> None:
        self._is_closed = True
        if not self._is_busy:
            self._reader.close()


def open_in_silo(open_reader: Callable[[], MessageFileReader], worker: IWorker) -> Deferred[IContent]:
    """Open a message file; fails with `Corrupt` or `Unavailable`."""

    def has_opened(reader: MessageFileReader) -> IContent:
        return SiloContent(reader, worker)

    return worker.run(open_reader).addCallbacks(has_opened, as_storage_error)


def as_storage_error(failure: Failure) -> Failure:
    """An OSError as what the seam knows."""
    if isinstance(failure.value, OSError):
        return Failure(Unavailable(f"a message can't be read: {failure.value}"))  # type: ignore[no-untyped-call]  # Twisted's
    return failure
