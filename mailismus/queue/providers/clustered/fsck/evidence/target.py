"""The target of a check: where the queue lies, and the known settings of its server."""

from __future__ import annotations

import os

import attrs

from mailismus.disk.interface import IDisk

LONGEST_FILE = 8 << 30
"""Bytes. A server makes no longer segment (at most 4 GiB) or cluster (no more than the journal held), and a longer one would
not fit into memory."""


def is_too_long(size_bytes: int) -> bool:
    """Whether a segment or a cluster of this size is too long to be read."""
    return size_bytes > LONGEST_FILE


@attrs.frozen
class Checking:
    """The target of one check. Paths are those of the queue's and the spool's directory."""

    disk: IDisk
    """A check only reads."""
    queue_path: str
    spool_path: str
    now: float
    """UTC seconds."""
    hardlinks: bool | None = None
    """As configured; None: not known."""
    largest_cluster: int = 0
    """As configured, bytes; 0: no limit, or not known."""
    is_here: bool = False
    """A server is to start on it as this user: owners and modes are checked too."""

    @property
    def journal_path(self) -> str:
        """The journal's directory."""
        return os.path.join(self.queue_path, "journal")

    @property
    def corrupt_path(self) -> str:
        """Where bytes that did not check are kept."""
        return os.path.join(self.queue_path, "corrupt")
