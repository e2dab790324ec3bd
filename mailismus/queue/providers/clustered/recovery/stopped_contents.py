"""Contents of messages of a stopped queue: in the spool, or in the journal."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping

from mailismus.disk.interface import IDisk
from mailismus.errors import Unavailable
from mailismus.journal.batch import BLOCK, decode_header
from mailismus.journal.replay import Journal
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage, Memtable
from mailismus.spool.message_file import PIECE_SIZE, open_message


class StoppedContents:
    """Contents of messages, in the spool or in the journal. `segments`: where each segment lies, by its number. `guessed`:
    numbers of those whose header did not check and was derived from the first batch; a server writes a new one first."""

    def __init__(
        self,
        memtable: Memtable,
        disk: IDisk,
        spool_path: str,
        segments: Mapping[int, str],
        guessed: Collection[int],
    ) -> None:
        self._memtable = memtable
        self._disk = disk
        self._spool_path = spool_path
        self._segments = segments
        self._guessed = guessed

    def read(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        """The content of a message that is there, in pieces, in order. Raises `StorageError`, `OSError`."""
        message = self._memtable.messages.get(spool_id)
        return self._from_spool(spool_id) if message is None or message.is_in_silo else self._from_journal(message)

    def _from_spool(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        reader = open_message(self._disk, self._spool_path, spool_id)
        try:
            while piece := reader.read():
                yield piece
        finally:
            reader.close()

    def _from_journal(self, message: JournaledMessage) -> Generator[bytes, None, None]:
        """After each piece: has a server that was started meanwhile used the segment anew?"""
        path = self._segments[message.segment]
        offset, end = message.offset, message.offset + message.message.stored_bytes
        file = self._disk.open(path)
        try:
            while offset < end:
                piece = file.read_at(offset, min(PIECE_SIZE, end - offset))
                header = decode_header(file.read_at(0, BLOCK))
                number = message.segment if header is None and message.segment in self._guessed else header and header.number
                if not piece or number != message.segment:
                    raise Unavailable("the journal has changed since it was read: does a server run on it now?")
                offset += len(piece)
                yield piece
        finally:
            file.close()


def guessed_segments(journal: Journal) -> frozenset[int]:
    """The numbers of segments whose header did not check."""
    return frozenset(one.header.number for one in journal.used if one.is_guessed and one.header is not None)
