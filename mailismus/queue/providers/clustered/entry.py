"""The clustered queue as the program knows it: `PROVIDER`, an `IProvider`.

*Rules*: each method imports the modules that it needs. So a command that reads a stopped queue loads no code of a server,
and a server none of `fsck`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn, TextIO

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.provider import (
    ConversionEnd,
    IOpenedQueue,
    IPlanCounter,
    IQueueBuilder,
    IQueueSource,
    IsLocal,
    IStoppedQueue,
    QueuePlace,
)
from mailismus.queue.providers.clustered.format.version import FORMATS, NAME, OWNERSHIP

if TYPE_CHECKING:  # a command that only asks a server shall not load Twisted
    from twisted.internet.interfaces import IReactorTime

    from mailismus.queue.fsck.finding import FsckReport
    from mailismus.queue.reactor import QueueReactor


class ClusteredProvider:
    """Local files: journal, cluster files, message files in a spool. `disk`: the disk from which stopped queues are read."""

    name = NAME
    formats = FORMATS
    has_spool = True
    is_in_files = True

    def __init__(self, disk: IDisk | None = None) -> None:
        self._disk = disk or PosixDisk(Access.READ_ONLY)

    def lacks(self) -> str:
        return ""

    def claims(self, queue_path: str) -> bool:
        """Whether the directory holds a queue; the first versions wrote no marks."""
        return OWNERSHIP.has_directories(self._disk, queue_path)

    def load(self) -> None:
        from mailismus.queue.providers.clustered import running  # noqa: F401

    def open(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime, is_local: IsLocal) -> IOpenedQueue:
        from mailismus.queue.providers.clustered.running import open_clustered_queue

        return open_clustered_queue(settings, reactor, clock)

    def set_up(self, settings: QueueSettings) -> tuple[str, ...]:
        return ()

    def open_stopped(self, place: QueuePlace) -> IStoppedQueue:
        from mailismus.queue.providers.clustered.recovery.offline import open_readonly

        return open_readonly(place.queue_path, _spool_of(place), self._disk)

    def new_counter(self) -> IPlanCounter:
        from mailismus.queue.providers.clustered.read.planned_count import PlanCounter

        return PlanCounter(self._disk)

    def check(self, settings: QueueSettings, now: float) -> FsckReport:
        from mailismus.queue.providers.clustered.fsck.check import check_configured

        return check_configured(settings, now)

    def check_copy(self, place: QueuePlace, now: float) -> FsckReport:
        from mailismus.queue.providers.clustered.fsck.check import check_copied

        return check_copied(place.queue_path, _spool_of(place), now)

    def repair(self, settings: QueueSettings, now: float) -> FsckReport:
        from mailismus.queue.providers.clustered.fsck.repair import repair

        return repair(settings, now)

    def open_writer(self, settings: QueueSettings) -> None:
        return None

    def open_source(self, place: QueuePlace, disk: IDisk) -> IQueueSource:
        from mailismus.queue.providers.clustered.conversion.source import open_source

        return open_source(disk, place.queue_path, _spool_of(place))

    def new_builder(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float) -> IQueueBuilder:
        from mailismus.queue.providers.clustered.conversion.build import ClusteredBuilder

        return ClusteredBuilder(settings, disk, epoch, now, os.urandom)

    def end_conversion(self, settings: QueueSettings, end: ConversionEnd, *, is_source: bool) -> None:
        """Locks shut servers out, and directories say which queue counts."""

    def dump(self, path: str, out: TextIO) -> None:
        from mailismus.queue.providers.clustered.dump import dump

        dump(path, out, self._disk)

    def dump_stored(self, place: QueuePlace, name: str, out: TextIO) -> NoReturn:
        raise AssertionError("this provider has files alone")


def _spool_of(place: QueuePlace) -> str:
    assert place.spool_path is not None, "a clustered queue has a spool"
    return place.spool_path


PROVIDER = ClusteredProvider()
