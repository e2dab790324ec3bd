"""Acts: what was done to a disk, in order, with facts that the outside world learned in between."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Kind(enum.Enum):
    """What an act does."""

    MKDIR = enum.auto()
    RMDIR = enum.auto()
    CREATE = enum.auto()
    RENAME = enum.auto()
    LINK = enum.auto()
    UNLINK = enum.auto()
    WRITE = enum.auto()
    TRUNCATE = enum.auto()
    SYNC = enum.auto()
    SYNC_DIRECTORY = enum.auto()
    SYNC_FILE_SYSTEM = enum.auto()
    SYNC_FAILED = enum.auto()
    """Of a file, or (inode 0) of a file system: pages written before count as clean and are never written again."""
    MARK = enum.auto()

    __hash__ = object.__hash__


NAMES = frozenset((Kind.MKDIR, Kind.RMDIR, Kind.CREATE, Kind.RENAME, Kind.LINK, Kind.UNLINK))
"""Acts that change directories."""

BYTES = frozenset((Kind.WRITE, Kind.TRUNCATE))
"""Acts that change what is in a file."""


class Act(NamedTuple):
    """One act. `inode` names a file for life, whatever its name; `offset` of a write, or the length that a truncate leaves,
    or the number that the file system gave to a new file; `to` of a rename or a link. A rename without an inode is that of a
    directory, with all that is in it."""

    kind: Kind
    path: str = ""
    inode: int = 0
    offset: int = 0
    data: bytes = b""
    to: str = ""
    mark: object = None

    def __str__(self) -> str:
        name = self.kind.name.lower().replace("_", " ")
        if self.kind is Kind.MARK:
            return f"known: {self.mark}"
        if self.kind is Kind.WRITE:
            return f"{name} {self.path} at {self.offset}, {len(self.data)} bytes"
        if self.kind is Kind.TRUNCATE:
            return f"{name} {self.path} to {self.offset}"
        return f"{name} {self.path}" + (f" -> {self.to}" if self.to else "")


def parent_of(path: str) -> str:
    """The directory that a name is in."""
    return path.rpartition("/")[0] or "/"
