"""The queue of chunks as the program knows it: `PROVIDER`, an `IProvider`.

*Rules*: each method imports the modules that it needs. So a command that reads a stopped queue loads no code of a server,
and a server none of `fsck`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TextIO

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.queue.provider import (
    ConversionEnd,
    IOpenedQueue,
    IProvider,
    IQueueBuilder,
    IQueueSource,
    IQueueWriter,
    IsLocal,
    IStoppedQueue,
    QueuePlace,
)
from mailismus.queue.providers.chunk.format.version import FORMATS, NAME, OWNERSHIP

if TYPE_CHECKING:  # a command that only asks a server shall not load Twisted
    from twisted.internet.interfaces import IReactorTime

    from mailismus.queue.fsck.finding import FsckReport
    from mailismus.queue.reactor import QueueReactor


class ChunkProvider:
    """Local files: a set of files for each message. `disk`: the disk from which stopped queues are read."""

    name = NAME
    formats = FORMATS
    has_spool = False
    is_in_files = True

    def __init__(self, disk: IDisk | None = None) -> None:
        self._disk = disk or PosixDisk(Access.READ_ONLY)

    def lacks(self) -> str:
        return ""

    def claims(self, queue_path: str) -> bool:
        """Whether its directories are there: without its mark no other provider may begin a queue beside them."""
        return OWNERSHIP.has_directories(self._disk, queue_path)

    def load(self) -> None:
        from mailismus.queue.providers.chunk import running  # noqa: F401

    def open(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime, is_local: IsLocal) -> IOpenedQueue:
        from mailismus.queue.providers.chunk.running import open_chunk_queue

        return open_chunk_queue(settings, reactor, is_local)

    def set_up(self, settings: QueueSettings) -> tuple[str, ...]:
        return ()

    def open_stopped(self, place: QueuePlace) -> IStoppedQueue:
        from mailismus.queue.providers.chunk.read.offline import open_readonly

        return open_readonly(place.queue_path, self._disk)

    def new_counter(self) -> NoReturn:
        raise AssertionError("this provider has no plans: a running server counts")

    def check(self, settings: QueueSettings, now: float) -> FsckReport:
        from mailismus.queue.providers.chunk.fsck.check import check_configured

        return check_configured(settings, now)

    def check_copy(self, place: QueuePlace, now: float) -> FsckReport:
        from mailismus.queue.providers.chunk.fsck.check import check_copied

        return check_copied(place.queue_path, now)

    def repair(self, settings: QueueSettings, now: float) -> FsckReport:
        from mailismus.queue.providers.chunk.fsck.repair import repair

        return repair(settings, now)

    def open_writer(self, settings: QueueSettings) -> IQueueWriter:
        from mailismus.queue.providers.chunk.beside import open_beside

        return open_beside(settings, PosixDisk())

    def open_source(self, place: QueuePlace, disk: IDisk) -> IQueueSource:
        from mailismus.queue.providers.chunk.conversion.source import open_source

        return open_source(disk, place.queue_path)

    def new_builder(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float) -> IQueueBuilder:
        from mailismus.chunks.generator import process_generator
        from mailismus.queue.providers.chunk.conversion.build import ChunkBuilder

        return ChunkBuilder(settings, disk, epoch, now, process_generator())

    def end_conversion(self, settings: QueueSettings, end: ConversionEnd, *, is_source: bool) -> None:
        """Locks shut servers out, and directories say which queue counts."""

    def dump(self, path: str, out: TextIO) -> None:
        from mailismus.queue.providers.chunk.dump import dump

        dump(path, out, self._disk)

    def dump_stored(self, place: QueuePlace, name: str, out: TextIO) -> NoReturn:
        raise AssertionError("this provider has files alone")


PROVIDER: IProvider = ChunkProvider()
