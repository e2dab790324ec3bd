"""The shared queue as the program knows it: `PROVIDER`, an `IProvider`.

*Rules*: each method imports the modules that it needs, and the packages of the clients are asked for by `open` and `set_up`
alone. What only a queue on local files can do is refused (69).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NoReturn, TextIO

from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import StartError
from mailismus.queue.provider import IOpenedQueue, IProvider, IsLocal, QueuePlace, QueueReactor
from mailismus.queue.providers.distributed.format.version import FORMATS, NAME, OWNERSHIP


class DistributedProvider:
    """Services elsewhere, and a directory with the lock, the mark and the name of this server."""

    name = NAME
    formats = FORMATS
    has_spool = False
    is_in_files = False

    def __init__(self, disk: IDisk | None = None) -> None:
        self._disk = disk or PosixDisk(Access.READ_ONLY)

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

    def open_stopped(self, place: QueuePlace) -> NoReturn:
        _refuse("be read without a running server")

    def new_counter(self) -> NoReturn:
        raise AssertionError("this provider has no plans: a running server counts")

    def check(self, settings: QueueSettings, now: float) -> NoReturn:
        _refuse("be checked")

    def check_copy(self, place: QueuePlace, now: float) -> NoReturn:
        _refuse("be checked")

    def repair(self, settings: QueueSettings, now: float) -> NoReturn:
        _refuse("be repaired")

    def open_writer(self, settings: QueueSettings) -> None:
        return None

    def open_source(self, place: QueuePlace, disk: IDisk) -> NoReturn:
        raise AssertionError("only a queue in files is converted")

    def new_builder(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float) -> NoReturn:
        raise AssertionError("only a queue in files is the result of a conversion")

    def dump(self, path: str, out: TextIO) -> NoReturn:
        _refuse("be printed file by file")


def _refuse(what: str) -> NoReturn:
    text = f"a queue of provider {NAME} lies in its services, and can't {what} by this version"
    raise StartError(os.EX_UNAVAILABLE, text)


PROVIDER: IProvider = DistributedProvider()
