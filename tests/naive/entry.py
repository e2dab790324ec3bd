"""The naive queue as the program knows it: `PROVIDER`, an `IProvider`. It can be run, and counted while it runs; no more."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NoReturn, TextIO

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool
from mailismus.errors import StartError
from mailismus.observe.metrics import Reader
from mailismus.queue.interface import Area
from mailismus.queue.provider import ConversionEnd, IProvider, IsLocal, QueuePlace
from mailismus.queue.reactor import QueueReactor
from mailismus.queue.sharing import ISharing
from mailismus.queue.throttle import ACT_SHARE
from tests.naive.opening import FORMAT, NAME, open_naive
from tests.naive.provider import NaiveQueue


class NaiveFigures:
    """`IQueueFigures`."""

    def __init__(self, queue: NaiveQueue) -> None:
        self._queue = queue

    def entries(self) -> Mapping[Area, int]:
        return {area: self._queue.count_in(area) for area in Area}

    def refusals(self) -> Mapping[str, bool]:
        return {}


class OpenedNaiveQueue:
    """`IOpenedQueue`."""

    def __init__(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime) -> None:
        self._threads = ThreadPool(reactor, "files", 4)
        self.queue = open_naive(settings, PosixDisk(), self._threads, clock)
        self.figures = NaiveFigures(self.queue)
        self.state_path: str | None = None
        self.sharing: ISharing | None = None
        self.act_share = ACT_SHARE

    def metrics(self) -> Sequence[Reader]:
        return ()

    def begin(self) -> Deferred[None]:
        self._threads.start()
        return self.queue.open()

    def end(self) -> None:
        self._threads.stop()

    def release(self) -> None:
        self.queue.release()


class NaiveProvider:
    """`IProvider`."""

    name = NAME
    formats = (FORMAT,)
    has_spool = False
    is_in_files = True

    def lacks(self) -> str:
        return ""

    def claims(self, queue_path: str) -> bool:
        return False

    def load(self) -> None:
        pass

    def open(
        self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime, is_local: IsLocal
    ) -> OpenedNaiveQueue:
        return OpenedNaiveQueue(settings, reactor, clock)

    def set_up(self, settings: QueueSettings) -> tuple[str, ...]:
        return ()

    def open_stopped(self, place: QueuePlace) -> NoReturn:
        _refuse()

    def open_writer(self, settings: QueueSettings) -> None:
        return None

    def new_counter(self) -> NoReturn:
        _refuse()

    def check(self, settings: QueueSettings, now: float) -> NoReturn:
        _refuse()

    def check_copy(self, place: QueuePlace, now: float) -> NoReturn:
        _refuse()

    def repair(self, settings: QueueSettings, now: float) -> NoReturn:
        _refuse()

    def open_source(self, place: QueuePlace, disk: IDisk) -> NoReturn:
        _refuse()

    def new_builder(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float) -> NoReturn:
        _refuse()

    def end_conversion(self, settings: QueueSettings, end: ConversionEnd, *, is_source: bool) -> None:
        pass

    def dump(self, path: str, out: TextIO) -> NoReturn:
        _refuse()

    def dump_stored(self, place: QueuePlace, name: str, out: TextIO) -> NoReturn:
        _refuse()


def _refuse() -> NoReturn:
    raise StartError(os.EX_UNAVAILABLE, "the naive provider does not do this")


PROVIDER: IProvider = NaiveProvider()
