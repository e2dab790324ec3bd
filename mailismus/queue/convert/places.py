"""The directories of a conversion, below the directories of queue and spool: what is made there stays in its file system, so
that it can change places by renames.

    queue/conversion/   state  lock  old/  new/  work/
    spool/conversion/   old/  new/

*Rules*: what belongs to the directory and not to one provider's queue stays where it is (`KEPT`): the lock, damaged bytes
set aside, state files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, NameKind
from mailismus.queue.files import state_file
from mailismus.queue.files.conversion import CONVERSION
from mailismus.queue.files.directories import LOCK
from mailismus.queue.provider import IProvider, QueuePlace

OLD, NEW, WORK = "old", "new", "work"

KEPT = frozenset((LOCK, CONVERSION, "corrupt", state_file.DIRECTORY, "lost+found"))
"""Names in the directories of queue and spool that never change places."""


@attrs.frozen
class ConversionRoot:
    """One directory whose contents change places: that of the queue, or of the spool."""

    path: str
    kept: frozenset[str] = KEPT
    """Names in it that stay."""

    @property
    def base(self) -> str:
        """Of everything of the conversion."""
        return os.path.join(self.path, CONVERSION)

    @property
    def old(self) -> str:
        """Where the old queue goes."""
        return os.path.join(self.base, OLD)

    @property
    def new(self) -> str:
        """Where the new queue is built."""
        return os.path.join(self.base, NEW)


@attrs.frozen
class ConversionPlaces:
    """The directories of one conversion. `spool` None: neither provider has a spool."""

    queue: ConversionRoot
    spool: ConversionRoot | None

    @property
    def roots(self) -> tuple[ConversionRoot, ...]:
        """Those that there are, that of the queue first."""
        return (self.queue,) if self.spool is None else (self.queue, self.spool)

    @property
    def paths(self) -> list[str]:
        """Their paths."""
        return [root.path for root in self.roots]

    @property
    def work(self) -> str:
        """Where sorted entries and digests are kept."""
        return os.path.join(self.queue.base, WORK)

    def place_of(self, provider: IProvider, settings: QueueSettings, *, is_new: bool) -> QueuePlace:
        """The old queue in its place, or the new one beside it. `settings`: with the services of either."""
        paths = [root.new if is_new else root.path for root in self.roots]
        return QueuePlace(paths[0], paths[1] if provider.has_spool else None, settings.services)


def places_of(queue_path: str, spool_path: str | None) -> ConversionPlaces:
    """The directories of a conversion of this queue; one of the two may lie in the other."""
    if spool_path is None:
        return ConversionPlaces(ConversionRoot(queue_path), None)
    queue = ConversionRoot(queue_path, KEPT | _way_to(queue_path, spool_path))
    return ConversionPlaces(queue, ConversionRoot(spool_path, KEPT | _way_to(spool_path, queue_path)))


def _way_to(path: str, other: str) -> frozenset[str]:
    """The name in `path` that leads to `other`, if one does."""
    first = os.path.relpath(other, path).split(os.sep)[0]
    return frozenset(() if first in (os.curdir, os.pardir) else (first,))


def settings_beside(settings: QueueSettings, provider: str, places: ConversionPlaces) -> QueueSettings:
    """The settings of the new queue while it is built."""
    spool = settings.spool if places.spool is None else attrs.evolve(settings.spool, rootpath=places.spool.new)
    return attrs.evolve(settings, provider=provider, rootpath=places.queue.new, spool=spool)


def remove_tree(disk: IDisk, path: str) -> None:
    """Remove a directory with everything in it, or a file; harmless where there is none. Durable afterwards: nothing. Raises
    `OSError`."""
    if not disk.exists(path):
        return
    if disk.describe(path).kind is not NameKind.DIRECTORY:
        disk.unlink(path)
        return
    directories = [path]
    for directory in directories:
        for entry in _paths_in(disk, directory):
            if disk.describe(entry).kind is NameKind.DIRECTORY:
                directories.append(entry)
            else:
                disk.unlink(entry)
    for directory in reversed(directories):
        disk.remove_directory(directory)


def _paths_in(disk: IDisk, directory: str) -> Iterator[str]:
    for name in disk.list_directory(directory):
        yield os.path.join(directory, name)
