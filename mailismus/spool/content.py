"""The content of a stored message, in pieces: of bytes at hand, or of a message file. Blocking calls run in a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.spool.message_file import MessageFileReader, open_message

SMALL = 65536
"""Bytes of a piece, and of a message file that is read in one act."""


class StoredContent(Protocol):
    """What `queue.interface.IContent` promises."""

    @property
    def stored_bytes(self) -> int: ...

    @property
    def at_hand(self) -> bytes | None: ...

    def next(self) -> Deferred[bytes]: ...

    def close(self) -> None: ...


class WholeContent:
    """A content whose bytes are at hand."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.stored_bytes = len(content)

    @property
    def at_hand(self) -> bytes | None:
        return self._content if self.stored_bytes <= SMALL else None

    def next(self) -> Deferred[bytes]:
        piece, self._content = self._content[:SMALL], self._content[SMALL:]
        return succeed(piece)

    def close(self) -> None:
        self._content = b""


class SiloContent:
    """A message file that is held open: it can be read to its end even when it is removed meanwhile."""

    at_hand = None

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


def open_in_silo(
    disk: IDisk, root: str, spool_id: SpoolId, worker: IWorker, is_corrupt: Callable[[Corrupt], None]
) -> Deferred[StoredContent]:
    """Open a message file; a small one is read at once. Fails with `Corrupt` or `Unavailable`."""

    def act() -> StoredContent:
        reader = open_message(disk, root, spool_id)
        if reader.size_bytes > SMALL:
            return SiloContent(reader, worker, is_corrupt)
        try:
            return WholeContent(reader.read())
        finally:
            reader.close()

    return worker.run(act).addErrback(as_storage_error, is_corrupt)


def as_storage_error(failure: Failure, is_corrupt: Callable[[Corrupt], None] | None = None) -> Failure:
    """An OSError as `Unavailable`; `is_corrupt` is told of bytes that do not check."""
    if isinstance(failure.value, Corrupt) and is_corrupt is not None:
        is_corrupt(failure.value)
    if isinstance(failure.value, OSError):
        return Failure(Unavailable(f"a message can't be read: {failure.value}"))  # type: ignore[no-untyped-call]  # Twisted's
    return failure
