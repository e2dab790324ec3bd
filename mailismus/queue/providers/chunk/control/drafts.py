"""Drafts: a small message stays in memory until its batch, a larger one streams into its file in mess."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.chunk.write.mess import MessWriter, MessWriters, StreamedMess
from mailismus.spool.draft import DraftTerms, SpoolDraft


class ChunkDraft(SpoolDraft):
    """`IDraft`. `writers` make the files of large messages."""

    __slots__ = ("_file", "_writers")

    def __init__(self, spool_id: SpoolId, terms: DraftTerms, writers: MessWriters) -> None:
        super().__init__(spool_id, terms)
        self._writers = writers
        self._file: StreamedMess | None = None

    def new_file(self) -> StreamedMess:
        """Return the file into which the content shall stream."""
        self._file = StreamedMess(self._writers)
        return self._file

    @property
    def writer(self) -> MessWriter | None:
        """The file with the content, complete; None: the content is in memory."""
        return self._file.writer if self._file is not None else None
