"""The shared queue as the program knows it: `PROVIDER`, an `IProvider`.

*Rules*: each method imports the modules that it needs, and the packages of the clients are asked for by what asks the
services alone. What only a queue on local files can do is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TextIO

from mailismus.config.values.services import ServicesSettings
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import StartError
from mailismus.queue.provider import (
    ConversionEnd,
    IOpenedQueue,
    IProvider,
    IQueueBuilder,
    IQueueSource,
    IsLocal,
    IStoppedQueue,
    QueuePlace,
)
from mailismus.queue.providers.distributed.format.version import FORMATS, NAME, OWNERSHIP

if TYPE_CHECKING:  # a command that only asks a server shall not load Twisted
    from twisted.internet.interfaces import IReactorTime

    from mailismus.queue.fsck.finding import FsckReport
    from mailismus.queue.providers.distributed.reaching import IReached
    from mailismus.queue.providers.distributed.stopped.look import LookTerms
    from mailismus.queue.reactor import QueueReactor


class DistributedProvider:
    """Services elsewhere, and a directory with the lock, the mark and the name of this server."""

    name = NAME
    formats = FORMATS
    has_spool = False
    is_in_files = False

    def __init__(self, disk: IDisk | None = None, reach: Callable[[ServicesSettings], IReached] | None = None) -> None:
        """`reach`: makes the clients of a command; None: those of the services."""
        self._disk = disk or PosixDisk(Access.READ_ONLY)
        self._reach = reach or _reach

    def lacks(self) -> str:
        from mailismus.queue.providers.distributed.stores.libraries import advice

        return advice()

    def claims(self, queue_path: str) -> bool:
        """Whether a server's name is there."""
        return OWNERSHIP.has_directories(self._disk, queue_path)

    def load(self) -> None:
        from mailismus.queue.providers.distributed import running  # noqa: F401
        from mailismus.queue.providers.distributed.stores.libraries import load_all

        load_all()

    def open(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime, is_local: IsLocal) -> IOpenedQueue:
        from mailismus.queue.providers.distributed.running import open_distributed_queue

        return open_distributed_queue(settings, reactor)

    def set_up(self, settings: QueueSettings) -> Sequence[str]:
        from mailismus.queue.providers.distributed.setting_up import set_up_services

        assert settings.services is not None, "a shared queue has services"
        return set_up_services(settings.services)

    def open_stopped(self, place: QueuePlace) -> IStoppedQueue:
        from mailismus.queue.providers.distributed.stopped.queue import SharedStoppedQueue

        return SharedStoppedQueue(*self._look(_services_of(place)))

    def new_counter(self) -> NoReturn:
        raise AssertionError("this provider has no plans: a running server counts")

    def check(self, settings: QueueSettings, now: float) -> FsckReport:
        from mailismus.queue.providers.distributed.fsck.report import check

        return check(settings, self._reach)

    def check_copy(self, place: QueuePlace, now: float) -> NoReturn:
        _services_of(place)
        raise AssertionError("a place without services was refused")

    def repair(self, settings: QueueSettings, now: float) -> FsckReport:
        from mailismus.queue.providers.distributed.fsck.report import repair

        return repair(settings, self._reach)

    def open_writer(self, settings: QueueSettings) -> None:
        return None

    def open_source(self, place: QueuePlace, disk: IDisk) -> IQueueSource:
        from mailismus.queue.providers.distributed.conversion.source import SharedSource

        return SharedSource(*self._look(_named_in_file(place.services)))

    def new_builder(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float) -> IQueueBuilder:
        from mailismus.queue.providers.distributed.conversion.build import SharedBuilder
        from mailismus.queue.providers.distributed.format.ids import ShareIds

        reached, terms = self._look(_named_in_file(settings.services))
        return SharedBuilder(reached, terms, disk, settings.rootpath, epoch, ShareIds(reached.now, terms.random_bits))

    def end_conversion(self, settings: QueueSettings, end: ConversionEnd, *, is_source: bool) -> None:
        from mailismus.queue.providers.distributed.conversion.ends import end_conversion

        reached, terms = self._look(_named_in_file(settings.services))
        try:
            reached.wait(end_conversion(reached, terms, end, is_source=is_source))
        finally:
            reached.close()

    def dump(self, path: str, out: TextIO) -> None:
        from mailismus.queue.providers.distributed.dump.files import dump_file

        dump_file(path, out, self._disk)

    def dump_stored(self, place: QueuePlace, name: str, out: TextIO) -> None:
        from mailismus.queue.providers.distributed.dump.stored import dump_stored

        reached, terms = self._look(_services_of(place))
        try:
            dump_stored(reached, terms, name, out)
        finally:
            reached.close()

    def _look(self, services: ServicesSettings) -> tuple[IReached, LookTerms]:
        """What a command without a server asks, and on which terms. Raises `StartError`."""
        from mailismus.queue.providers.distributed.stopped.queue import terms_of

        reached = self._reach(services)
        return reached, terms_of(services, reached)


def _reach(services: ServicesSettings) -> IReached:
    from mailismus.queue.providers.distributed.reaching import ReachedServices

    return ReachedServices(services)


def _named_in_file(services: ServicesSettings | None) -> ServicesSettings:
    """The services of a configuration. Raises `StartError` (78)."""
    if services is None:
        text = f'the services of the queue are not known: write --config FILE with <queue provider="{NAME}">, and the same'
        raise StartError(os.EX_CONFIG, f"{text} <rootpath>")
    return services


def _services_of(place: QueuePlace) -> ServicesSettings:
    if place.services is None:
        text = (
            f"{place.queue_path} is of a queue that lies in services, and holds no mail: remove --queue, write --config FILE"
        )
        raise StartError(os.EX_USAGE, text)
    return place.services


PROVIDER: IProvider = DistributedProvider()
