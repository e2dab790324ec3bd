"""Segments: the journal's files, created, used and reused.

A segment is written once with zeros before its first use, so that no later barrier has to allocate blocks or record a
length; then it is reused, each time under a new number, nonce and name. The name is for people: the header decides
whether and where a segment counts. Only the name of a free one says more: that of the number in its header is over.

    free --begin--> current --full--> used --horizon passes it--> free
                       \\--barrier fails--> sick --horizon passes it--> gone

*Rules*: a segment is begun by its header and first batch in one barrier; it is free again only when a checkpoint whose
horizon lies behind its last batch is durable.
"""

from __future__ import annotations

import os

from mailismus.disk.interface import IDisk, IFile, NameStanding, close_read
from mailismus.journal.batch import BLOCK, SegmentHeader

READY_NAME = "ready-"
"""Prefix of the name of a segment that is free: it was never used, or it was given such a name (`free_name`)."""

SMALLEST = 1 << 20
"""Bytes of a segment, at least."""

_ZEROS = bytes(1 << 20)


def segment_size_for(wanted_bytes: int, journal_bytes: int, file_system_bytes: int) -> int:
    """Bytes of a segment: as configured, at most 1/4 of the journal's limit and 1/32 of the file system, at least 1 MiB;
    whole blocks."""
    size = max(SMALLEST, min(wanted_bytes, journal_bytes // 4, file_system_bytes // 32))
    return size // BLOCK * BLOCK


class Segment:
    """One file of the journal, open. Changed by the journal's thread alone while it is current."""

    __slots__ = ("end", "file", "header", "is_given_up", "last_sequence", "path", "size_bytes")

    def __init__(self, path: str, file: IFile, size_bytes: int) -> None:
        self.path = path
        self.file = file
        self.size_bytes = size_bytes
        self.header: SegmentHeader | None = None
        self.end = BLOCK
        """Where the next batch begins."""
        self.last_sequence = 0
        """Of the last batch written into it."""
        self.is_given_up = False
        """It has failed: nothing is written to it any more, and its name is not checked."""

    def has_name(self) -> bool:
        """Whether its name leads to it; False where that is not known."""
        try:
            return self.file.standing(self.path) is NameStanding.NAMED
        except OSError:
            return False

    def rename(self, disk: IDisk, path: str) -> None:
        """Give the file another name, which is durable when its directory is synced. Raises OSError."""
        disk.rename(self.path, path)
        self.path = path

    def is_whole(self) -> bool:
        """Whether its name leads to it and it has its full length; False where that is not known. A file that was cut can be
        written and synced beyond its end without any error, and the bytes between are lost."""
        try:
            return self.has_name() and self.file.size() >= self.size_bytes
        except OSError:
            return False

    def begin(self, header: SegmentHeader) -> None:
        """Take it into use: write its header. The barrier of its first batch makes the header durable."""
        self.header = header
        self.end = BLOCK
        self.last_sequence = header.first_sequence - 1
        self.file.write_at(0, [header.encode()])

    def pad(self) -> None:
        """Write zeros behind its last batch up to the smallest size of a segment: a shorter one looks cut."""
        for offset in range(self.end, SMALLEST, len(_ZEROS)):
            self.file.write_at(offset, [_ZEROS[: SMALLEST - offset]])

    @property
    def nonce(self) -> bytes:
        """Of its present use."""
        assert self.header is not None
        return self.header.nonce

    @property
    def number(self) -> int:
        """Of its present use; 0: free."""
        return self.header.number if self.header is not None else 0

    @property
    def format(self) -> int:
        """Of its present use; 0: free."""
        return self.header.format if self.header is not None else 0

    @property
    def room(self) -> int:
        """Bytes behind its last batch."""
        return self.size_bytes - self.end


def file_name(number: int) -> str:
    """The name of the segment of this number."""
    return f"{number:08d}.mqj"


def free_name(number: int) -> str:
    """The name of a segment that had this number, and is free."""
    return READY_NAME + file_name(number)


def make_segment(disk: IDisk, directory: str, name: str, size_bytes: int) -> Segment:
    """Create a segment full of zeros. Durable afterwards: its bytes, its length and its name. On failure nothing is left."""
    path = os.path.join(directory, name)
    file = disk.create(path)
    try:
        for offset in range(0, size_bytes, len(_ZEROS)):
            file.write_at(offset, [_ZEROS[: size_bytes - offset]])
        file.sync()
        disk.sync_directory(directory)
    except OSError:
        close_read(file)
        disk.unlink(path)
        raise
    return Segment(path, file, size_bytes)
