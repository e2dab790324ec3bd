"""What is checked: where the queue lies, and what is known of how its server is set up."""

from __future__ import annotations

import os

import attrs

from mailismus.disk.interface import IDisk

LONGEST_FILE = 8 << 30
"""Bytes. A segment or a cluster that is longer was never made here, and would not fit into memory: a segment has 4 GiB at
most, a cluster no more than the journal held."""


def is_too_long(size_bytes: int) -> bool:
    """Whether a segment or a cluster of this size is not read."""
    return size_bytes > LONGEST_FILE


@attrs.frozen
class Checking:
    """One check. Paths are those of the queue's and the spool's directory."""

    disk: IDisk
    """Only read by a check."""
    queue_path: str
    spool_path: str
    now: float
    """UTC seconds."""
    hardlinks: bool | None = None
    """As configured; None: not known."""
    largest_cluster: int = 0
    """As configured, bytes; 0: no limit, or not known."""
    is_here: bool = False
    """A server of ours is to start on it as this user: whether it may is looked at too."""

    @property
    def journal_path(self) -> str:
        """The journal's directory."""
        return os.path.join(self.queue_path, "journal")

    @property
    def corrupt_path(self) -> str:
        """Where bytes that did not check are kept."""
        return os.path.join(self.queue_path, "corrupt")
