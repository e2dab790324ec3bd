"""The program's events, while a test looks."""

from __future__ import annotations

from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer


@implementer(ILogObserver)
class Events:
    """Those of the block."""

    def __init__(self) -> None:
        self.found: list[LogEvent] = []

    def __enter__(self) -> list[LogEvent]:
        globalLogPublisher.addObserver(self)
        return self.found

    def __exit__(self, *_: object) -> None:
        globalLogPublisher.removeObserver(self)

    def __call__(self, event: LogEvent) -> None:
        self.found.append(event)
