"""Names in the areas of a stopped queue: which files are clusters, and which names are of nobody.

*Not here*: what is in the clusters (`clusters`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import attrs

from mailismus.disk.interface import NameKind
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.names import NameCheck
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.checkpoint.write import RENEWED
from mailismus.queue.providers.clustered.format.cluster import SUFFIX, ClusterId, parse_cluster_path
from mailismus.queue.providers.clustered.format.slots import slot_start
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind, Problem, problem


@attrs.frozen
class FoundCluster:
    """A file that is, or is named like, a cluster."""

    path: str
    cluster: ClusterId | None
    """None: no server reads a cluster here."""


def find_clusters_and_others(checking: Checking, names: NameCheck) -> Iterator[FoundCluster | Problem]:
    """All files that are or are named like clusters, and problems with other names between them."""
    root = checking.queue_path
    for name in names.list(root):
        if name.endswith(SUFFIX):
            yield FoundCluster(os.path.join(root, name), None)
    for area in Area:
        directory = os.path.join(root, area.value)
        for name in names.list(directory):
            path = os.path.join(directory, name)
            if names.is_directory(path):
                yield from _in_slot(area, path, name, names)
            elif name.endswith(SUFFIX):
                yield FoundCluster(path, parse_cluster_path(area, "", name))
            elif parse_cluster_path(area, "", name.removesuffix(RENEWED)) is not None:
                yield problem(FindingKind.CLUSTER_RENEWED, path)
            elif area is Area.DEFERRED and slot_start(name) is not None:
                mend = partial(actions.move_aside, path)
                what = checking.disk.describe(path).kind.value
                yield problem(FindingKind.NO_PLAIN_FILE, path, None, mend, what=what, wanted=NameKind.DIRECTORY.value)
            else:
                yield problem(FindingKind.FOREIGN, path)


def _in_slot(area: Area, directory: str, slot: str, names: NameCheck) -> Iterator[FoundCluster | Problem]:
    inside = names.list(directory)
    is_slot = area is Area.DEFERRED and slot_start(slot) is not None
    if not inside and is_slot:
        yield problem(FindingKind.DIRECTORY_EMPTY, directory)
        return
    if not is_slot and not any(name.endswith(SUFFIX) for name in inside):
        yield problem(FindingKind.FOREIGN, directory)
        return
    if is_slot:
        yield from names.check(directory, NameKind.DIRECTORY)
    for name in inside:
        path = os.path.join(directory, name)
        if name.endswith(SUFFIX) and not names.is_directory(path):
            yield FoundCluster(path, parse_cluster_path(area, slot, name) if is_slot else None)
        elif is_slot and parse_cluster_path(area, slot, name.removesuffix(RENEWED)) is not None:
            yield problem(FindingKind.CLUSTER_RENEWED, path)
        else:
            yield problem(FindingKind.FOREIGN, path)
