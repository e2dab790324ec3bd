"""Refusals: what a check or a repair of a clustered queue is not begun on. Nothing was changed when one is raised."""

from __future__ import annotations

from mailismus.queue.files.locations import QUEUE_DIRECTORIES
from mailismus.queue.files.newer_formats import refuse_newer_spool
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.fsck.refusals import refuse_empty_spool, refuse_other_than_directories
from mailismus.queue.providers.clustered.format.version import OWNERSHIP
from mailismus.queue.providers.clustered.recovery.newer_formats import refuse_newer_queue
from mailismus.spool.silo import SILO_NAMES


def refuse_newer_formats(checking: Checking) -> None:
    """Refuse files of a newer format, which would look like damage. Raises `NewerFormat`."""
    refuse_newer_queue(checking.disk, checking.queue_path)
    refuse_newer_spool(checking.disk, checking.spool_path)


def refuse_repair(checking: Checking) -> None:
    """Raise `StartError` or `NewerFormat` where nothing may be changed."""
    disk, queue_path, spool_path = checking.disk, checking.queue_path, checking.spool_path
    refuse_other_than_directories(disk, {queue_path: QUEUE_DIRECTORIES, spool_path: SILO_NAMES})
    OWNERSHIP.refuse_unknown(disk, queue_path)
    refuse_newer_formats(checking)
    refuse_empty_spool(disk, checking.journal_path, spool_path)
