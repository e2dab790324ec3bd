"""Lists the message files of a spool, by their names alone: files are not read. Blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from mailismus.disk.interface import IDisk
from mailismus.spool.silo import SILO_NAMES, parse_message_name

NotListed = Callable[[str, OSError], None]
"""Called for a directory that can't be listed."""


def find_message_files(disk: IDisk, spool_path: str, not_listed: NotListed | None = None) -> Iterator[str]:
    """Paths of all message files, silo by silo, sorted in each. Raises OSError for a silo that can't be listed; with
    `not_listed` it is skipped."""
    for silo in SILO_NAMES:
        directory = os.path.join(spool_path, silo)
        try:
            names = sorted(disk.list_directory(directory))
        except OSError as error:
            if not_listed is None:
                raise
            not_listed(directory, error)
            continue
        for name in names:
            if parse_message_name(name) is not None:
                yield os.path.join(directory, name)
