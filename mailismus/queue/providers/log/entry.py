"""The log-structured queue as the program knows it: `PROVIDER`, an `IProvider`. The table of providers does not have it yet.

*Rules*: each method imports the modules that it needs.

*Not built*: reading a stopped queue, checks, repairs and dumps.
"""

from __future__ import annotations

import os
from typing import NoReturn, TextIO

from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.errors import StartError
from mailismus.queue.provider import IOpenedQueue, IProvider, QueuePlace, QueueReactor
from mailismus.queue.providers.log.format.version import FORMATS, NAME


class LogProvider:
    """Local files: one log, large messages in a spool."""

    name = NAME
    formats = FORMATS
    has_spool = True

    def claims(self, queue_path: str) -> bool:
        """No directory of it lacks a mark."""
        return False

    def load(self) -> None:
        from mailismus.queue.providers.log import running  # noqa: F401

    def open(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime) -> IOpenedQueue:
        from mailismus.queue.providers.log.running import OpenedLogQueue

        return OpenedLogQueue(settings, reactor, clock)

    def open_stopped(self, place: QueuePlace) -> NoReturn:
        _refuse("reading a stopped queue")

    def new_counter(self) -> NoReturn:
        raise AssertionError("it has no plans")

    def check(self, settings: QueueSettings, now: float) -> NoReturn:
        _refuse("a check")

    def check_copy(self, place: QueuePlace, now: float) -> NoReturn:
        _refuse("a check")

    def repair(self, settings: QueueSettings, now: float) -> NoReturn:
        _refuse("a repair")

    def dump(self, path: str, out: TextIO) -> NoReturn:
        _refuse("a dump")


def _refuse(what: str) -> NoReturn:
    raise StartError(os.EX_UNAVAILABLE, f"{what} is not available for log-structured queues in this version")


PROVIDER: IProvider = LogProvider()
