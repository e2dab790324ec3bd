"""A draft of the clustered queue: a small one stays in memory until its commit, a larger one streams into its silo.

Two `Budget`s bound the memory of all drafts together. One is for drafts in memory: a draft that exceeds it goes to its silo,
whatever its size. The other is for bytes on their way to a silo (`stream`).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred, succeed

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.spool.budget import Budget
from mailismus.spool.message_file import MessageFileWriter
from mailismus.spool.stream import SiloStream, StreamedFile, join


@attrs.frozen
class DraftTerms:
    """What the drafts of one queue share. `memory`: of drafts in memory; `behind`: of pieces on their way to a silo;
    `largest_in_memory`: bytes of a draft that may stay in memory; `bufsize`: as `SiloStream`."""

    disk: IDisk
    spool_path: str
    worker: IWorker
    memory: Budget
    behind: Budget
    largest_in_memory: int
    bufsize: int


class SpoolDraft:
    """`IDraft` of the clustered queue."""

    __slots__ = ("_is_over", "_stream", "_terms", "parts", "spool_id", "stored_bytes")

    def __init__(self, spool_id: SpoolId, terms: DraftTerms) -> None:
        self.spool_id = spool_id
        self.stored_bytes = 0
        self.parts: list[bytes] = []
        """The content while it is in memory alone."""
        self._terms = terms
        self._stream: SiloStream | None = None
        """The way to the silo; None: the content is in memory alone."""
        self._is_over = False
        """It is complete, or given up."""

    @property
    def is_in_silo(self) -> bool:
        """Whether the content streams into a message file."""
        return self._stream is not None

    def write(self, data: bytes) -> Deferred[None] | None:
        if self._is_over:
            return None
        size = len(data)
        stored_bytes = self.stored_bytes = self.stored_bytes + size
        stream = self._stream
        if stream is None:
            terms = self._terms
            if stored_bytes <= terms.largest_in_memory and terms.memory.take(size):
                if self.parts:
                    join(self.parts, data)
                else:
                    self.parts.append(data)
                return None
            stream = self._start_streaming(stored_bytes - size)
        return stream.write(data)

    def content(self) -> bytes:
        """Return the content, which is in memory. One piece is not copied."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    def _start_streaming(self, size: int) -> SiloStream:
        """Give the `size` bytes held in memory to a stream."""
        terms = self._terms
        terms.memory.give_back(size)
        pieces, self.parts = self.parts, []
        stream = self._stream = SiloStream(self.new_file(), terms.worker, terms.behind, terms.bufsize, pieces)
        return stream

    def new_file(self) -> StreamedFile:
        """Return the file into which the content shall stream."""
        return MessageFileWriter(self._terms.disk, self._terms.spool_path, self.spool_id)

    def finish(self, numbers: Sequence[int] = ()) -> Deferred[None]:
        """End the content. `numbers`: as `SiloStream.finish`, if it has a message file. Fires when the content is as durable
        as the journal record needs it; fails with `Unavailable`. From here on only the queue can drop it."""
        self._is_over = True
        return succeed(None) if self._stream is None else self._stream.finish(numbers)

    def keep(self) -> None:
        """Mark it committed: the queue owns the bytes on disk. Frees its memory."""
        self._is_over = True
        if self.parts:
            self._terms.memory.give_back(self.stored_bytes)
            self.parts = []
        if self._stream is not None:
            self._stream.keep()

    def abandon(self) -> None:
        if not self._is_over:
            self.drop()

    def drop(self) -> None:
        """Free its memory, and remove the bytes on disk after a failed commit. Harmless when repeated, and once it is
        kept."""
        self._is_over = True
        if self.parts:
            self._terms.memory.give_back(self.stored_bytes)
            self.parts = []
        if self._stream is not None:
            self._stream.drop()


class RefusedDrafts:
    """Drafts whose commits failed. If their batch may still be found on disk (its barrier failed), their message files stay
    until a later batch, which denies it, is durable: after a crash before that, the messages may come back whole.
    """

    def __init__(self) -> None:
        self._kept: list[SpoolDraft] = []

    def add(self, drafts: Sequence[SpoolDraft], *, may_be_found: bool) -> None:
        """Add drafts of a failed commit."""
        for draft in drafts:
            if may_be_found and draft.is_in_silo:
                self._kept.append(draft)
            else:
                draft.drop()

    def drop(self) -> None:
        """Drop them all: a later batch is durable."""
        if self._kept:
            kept, self._kept = self._kept, []
            for draft in kept:
                draft.drop()
