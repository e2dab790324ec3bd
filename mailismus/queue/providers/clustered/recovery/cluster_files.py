"""Lists the clusters in a queue's directories, by names alone: files are not read.

*Not here*: which of them count (`opening`, `salvage`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from mailismus.disk.interface import IDisk
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.checkpoint.write import RENEWED
from mailismus.queue.providers.clustered.format.cluster import ClusterId, parse_cluster_path
from mailismus.queue.providers.clustered.format.slots import slot_start

NotListed = Callable[[str, OSError], None]
"""Called for a directory that can't be listed."""


def find_clusters(
    disk: IDisk, root: str, leftovers: list[str] | None = None, not_listed: NotListed | None = None
) -> Iterator[ClusterId]:
    """All clusters by their names, whether or not they count. `leftovers` gets the paths of unfinished rewritten clusters.
    Raises OSError for a directory that can't be listed; with `not_listed` it is skipped."""
    for area in Area:
        directory = os.path.join(root, area.value)
        slots = [""]
        if area is Area.DEFERRED:
            slots = [name for name in _names_in(disk, directory, not_listed) if slot_start(name) is not None]
        for slot in slots:
            here = os.path.join(directory, slot) if slot else directory
            for name in _names_in(disk, here, not_listed):
                cluster_id = parse_cluster_path(area, slot, name)
                if cluster_id is not None:
                    yield cluster_id
                elif leftovers is not None and parse_cluster_path(area, slot, name.removesuffix(RENEWED)) is not None:
                    leftovers.append(os.path.join(here, name))


def _names_in(disk: IDisk, directory: str, not_listed: NotListed | None) -> list[str]:
    """Names in a directory; none where it is missing (copies of a queue may lack empty ones) or is a file."""
    try:
        return sorted(disk.list_directory(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if not_listed is None:
            raise
        not_listed(directory, error)
        return []
