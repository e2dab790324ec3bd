"""The target of a check: where the queue lies, and the known settings of its server."""

from __future__ import annotations

import os

import attrs

from mailismus.disk.interface import IDisk
from mailismus.queue.fsck.faults import FaultKind

LONGEST_FILE = 8 << 30
"""Bytes. A server makes no longer segment (at most 4 GiB) or cluster (no more than the journal held), and a longer one would
not fit into memory."""


def is_too_long(size_bytes: int) -> bool:
    """Whether a segment or a cluster of this size is too long to be read."""
    return size_bytes > LONGEST_FILE


@attrs.frozen
class DirectoryLayout:
    """What a provider's directory has. `directories`: names there, that of the segments first; `own`: endings of the names
    of its other files; `kinds`: of its findings; `keeps_all`: segments below the horizon are needed too; `needed`:
    directories without which no server starts while there are segments, told as AREA_MISSING."""

    directories: tuple[str, ...]
    own: tuple[str, ...]
    kinds: type[FaultKind]
    keeps_all: bool = False
    needed: frozenset[str] = frozenset()


@attrs.frozen
class Checking:
    """The target of one check. Paths are those of the queue's and the spool's directory."""

    disk: IDisk
    """A check only reads."""
    queue_path: str
    spool_path: str
    layout: DirectoryLayout
    now: float
    """UTC seconds."""
    hardlinks: bool | None = None
    """As configured; None: not known."""
    largest_cluster: int = 0
    """As configured, bytes; 0: no limit, or not known."""
    is_here: bool = False
    """A server is to start on it as this user: owners and modes are checked too."""

    @property
    def kinds(self) -> type[FaultKind]:
        """The provider's kinds of findings."""
        return self.layout.kinds

    @property
    def journal_path(self) -> str:
        """The directory of the segments."""
        return os.path.join(self.queue_path, self.layout.directories[0])

    @property
    def corrupt_path(self) -> str:
        """Where bytes that did not check are kept."""
        return os.path.join(self.queue_path, "corrupt")
