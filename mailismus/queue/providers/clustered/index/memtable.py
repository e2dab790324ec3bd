"""The memtable: messages and entries whose durable copy is in the journal, as an index in memory (pure)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from mailismus.queue.due.entries import NONE_OUT, DueMessage
from mailismus.queue.due.index import DueIndex
from mailismus.queue.interface import Entry, Message


class JournaledMessage(DueMessage):
    """One message of the memtable, and the place of its content."""

    __slots__ = ("checksum", "content", "is_in_silo", "offset", "segment")

    def __init__(self, message: Message, entries: Sequence[Entry] = (), content: bytes | None = None) -> None:
        """`entries`: of a new message, which is durable, and in the index, from `arrive` on. `content`: when it is in
        memory."""
        # The attributes of `DueMessage` too: a call of its constructor would cost each message as much again.
        self.message = message
        if len(entries) == 1:
            entry = entries[0]
            self.entries = {entry.number: entry}
        else:
            self.entries = {entry.number: entry for entry in entries}
        self.out = NONE_OUT
        self.since = 0.0
        self.content = content
        """The content when it is in memory."""
        self.checksum = 0
        """CRC of a content that is in the journal alone: its bytes may have been overwritten since."""
        self.segment = 0
        """Number of the segment that holds its newest record."""
        self.offset = 0
        """Offset of the content in that segment's file."""
        self.is_in_silo = False
        """The content is a message file, not in the journal."""

    def arrive(self, segment: int, offset: int) -> None:
        """Note that the message is durable in this segment."""
        self.segment, self.offset = segment, offset

    def move_to(self, segment: int, offset: int) -> None:
        """Note that the message was rewritten: it is durable in this segment now, its content at this offset."""
        self.segment, self.offset = segment, offset

    def drop_content(self) -> int:
        """Keep no content in memory; return how many bytes that frees."""
        content, self.content = self.content, None
        return 0 if content is None else len(content)

    def put_in_silo(self) -> None:
        """Note that the content is a message file from now on."""
        self.is_in_silo = True

    def put_in_journal(self, segment: int, offset: int) -> None:
        """The content is in this segment, at this offset, and no message file."""
        self.is_in_silo = False
        self.move_to(segment, offset)

    def leave_content(self, content: bytes | memoryview) -> None:
        """Drop the content from memory, and keep its CRC: it is in the journal alone from now on."""
        self.checksum = zlib.crc32(content)
        self.content = None

    def has_written(self, content: bytes) -> bool:
        """Whether these bytes, read from the journal, are the content that was written there."""
        return zlib.crc32(content) == self.checksum


class Memtable(DueIndex[JournaledMessage]):
    """Index of all messages whose entries are in the journal."""
