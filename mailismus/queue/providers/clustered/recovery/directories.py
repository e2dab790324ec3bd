"""Directories of a clustered queue: checked before anything is changed, then made where they are missing. Blocks."""

from __future__ import annotations

import os

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt, StartError
from mailismus.journal.replay import SUFFIX as SEGMENT_SUFFIX
from mailismus.queue.files.directories import check_safe, make_directories
from mailismus.queue.files.locations import QUEUE_DIRECTORIES
from mailismus.queue.files.mark import read_mark
from mailismus.queue.files.newer_formats import refuse_newer_journal
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.version import AREAS_OF_FORMAT_1, OWNERSHIP
from mailismus.spool.silo import SILO_NAMES


def prepare_directories(settings: QueueSettings, disk: IDisk) -> None:
    """Refuse what is another provider's, a newer program's, unsafe, or incomplete; then make what is missing. Raises
    `StartError`, `NewerFormat`, `OSError`."""
    _refuse_newer_journal(settings, disk)
    OWNERSHIP.refuse_foreign(disk, settings.rootpath)
    refuse_missing_areas(settings, disk)
    make_queue(settings, disk)


def _refuse_newer_journal(settings: QueueSettings, disk: IDisk) -> None:
    """Raise `NewerFormat` where a newer program has written to the journal, before anything is made, and before anything is
    said of directories that a newer format may not have."""
    if disk.exists(settings.rootpath):
        check_safe(disk, settings.rootpath)
        refuse_newer_journal(disk, os.path.join(settings.rootpath, "journal"))


def refuse_missing_areas(settings: QueueSettings, disk: IDisk) -> None:
    """Refuse to start without the directory of an area that the queue has had: its entries would be gone, and their message
    files would be removed as strays. All areas are made before the first segment of the journal. Raises `StartError`,
    `OSError`, having changed nothing."""
    if not disk.exists(settings.rootpath):
        return
    check_safe(disk, settings.rootpath)
    journal = os.path.join(settings.rootpath, "journal")
    areas = [os.path.join(settings.rootpath, area.value) for area in areas_of(settings.rootpath, disk)]
    missing = next((path for path in areas if not disk.exists(path)), None)
    if missing is None or not disk.exists(journal):
        return
    if any(name.endswith(SEGMENT_SUFFIX) for name in disk.list_directory(journal)):
        text = (
            f"{missing} is gone, with all entries that were in it: move it back, or mount it; "
            "or run mailismus fsck --repair, which goes on without it and keeps the messages"
        )
        raise StartError(os.EX_DATAERR, text)


def areas_of(queue_path: str, disk: IDisk) -> tuple[Area, ...]:
    """Return the areas that this queue has had, by its mark. One without a mark that can be read may be of format 1."""
    try:
        mark = read_mark(disk, queue_path)
    except (Corrupt, OSError):
        mark = None
    return AREAS_OF_FORMAT_1 if mark is None or mark.format == 1 else tuple(Area)


def make_queue(settings: QueueSettings, disk: IDisk) -> None:
    """Make what is missing of the directories of queue and spool, refuse what is unsafe. Raises `StartError`, `OSError`."""
    make_directories(disk, settings.rootpath, QUEUE_DIRECTORIES)
    make_directories(disk, settings.spool.rootpath, SILO_NAMES)
