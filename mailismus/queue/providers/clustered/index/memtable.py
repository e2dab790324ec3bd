"""The memtable: messages and entries whose durable copy is in the journal, as an index in memory (pure)."""

from __future__ import annotations

import zlib

from mailismus.queue.due.index import DueIndex, DueMessage
from mailismus.queue.interface import Message


class JournaledMessage(DueMessage):
    """One message of the memtable, and where its content is."""

    __slots__ = ("checksum", "content", "is_in_silo", "offset", "segment")

    def __init__(self, message: Message) -> None:
        # The attributes of `DueMessage` too: a call of its constructor would cost each message as much again.
        self.message = message
        self.entries = {}
        self.out = set()
        self.since = 0.0
        self.content: bytes | None = None
        """The content when it is in memory."""
        self.checksum = 0
        """Of the content, where it is in the journal alone: what is read there may have been overwritten since."""
        self.segment = 0
        """Number of the segment that holds its newest record."""
        self.offset = 0
        """Where the content begins in that segment's file."""
        self.is_in_silo = False
        """The content is a message file, not in the journal."""

    def leave_content(self, content: bytes | memoryview) -> None:
        """This content is in the journal alone from now on."""
        self.checksum = zlib.crc32(content)
        self.content = None

    def has_written(self, content: bytes) -> bool:
        """Whether this, read in the journal, is what was written there."""
        return zlib.crc32(content) == self.checksum


class Memtable(DueIndex[JournaledMessage]):
    """All messages that are in the journal alone."""
