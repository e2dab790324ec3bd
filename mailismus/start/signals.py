"""Signals that ask the running server for something: remembered from the first line of a start on, answered once it runs.

The handler writes the signal's number into a pipe, which the reactor reads when it runs. The pipe is older than the fork of
a daemon and outlives it: what came to any process of the start is answered by the one that serves.

*Rules*: equal signals that wait are one. SIGTERM and SIGINT end a start at once and without a word, as they end any program:
the next start finds the queue as after a crash.

*Weakness*: before `remember`, while Python and Twisted are loaded, each of these signals ends the process.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IReadDescriptor
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

if TYPE_CHECKING:  # what is imported here is loaded before signals are remembered
    from mailismus.start.server import Reactor

Acts = Mapping[signal.Signals, Callable[[], None]]

ASKING = (signal.SIGUSR1, signal.SIGHUP)
_ROOM = 65536
"""Bytes that a pipe holds."""


@implementer(IReadDescriptor)
class Signals:
    """The signals of one process, and of those that it forks; those of `ASKING` are remembered from now on. Made in the main
    thread."""

    _log = Logger()

    def __init__(self) -> None:
        self._reader, self._writer = (_out_of_reach(descriptor) for descriptor in os.pipe())
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._acts: dict[int, Callable[[], None]] = {}
        self._is_interrupt_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        for number in ASKING:
            signal.signal(number, self._note)
        if self._is_interrupt_python:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def serve(self, reactor: Reactor, acts: Acts) -> None:
        """Answer each of `ASKING` by its act once this reactor runs: first of all those that have come before. SIGTERM and
        SIGINT are the reactor's from now on."""
        self.answer(acts)
        if self._is_interrupt_python:  # else the reactor would take it for somebody else's
            signal.signal(signal.SIGINT, signal.default_int_handler)
        reactor.addReader(self)
        reactor.callWhenRunning(self.doRead)

    def answer(self, acts: Acts) -> None:
        """Answer other signals too, from now on."""
        for number, act in acts.items():
            self._acts[number] = act
            signal.signal(number, self._note)

    def fileno(self) -> int:
        """For the reactor."""
        return self._reader

    def doRead(self) -> None:
        """For the reactor: signals have come. What an act raises is logged."""
        try:
            numbers = os.read(self._reader, _ROOM)
        except BlockingIOError:
            return
        for number in dict.fromkeys(numbers):
            try:
                self._acts[number]()
            except Exception:  # a bug of ours: the other signals are answered all the same
                self._log.failure("Signal {number} could not be answered", number=number)

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor, which ends. The pipe stays, for a signal may still come."""

    def logPrefix(self) -> str:
        """For the reactor."""
        return "signals"

    def _note(self, number: int, frame: FrameType | None) -> None:
        try:
            os.write(self._writer, bytes((number,)))
        except BlockingIOError:
            pass  # so many wait that this is one of them


def _out_of_reach(descriptor: int) -> int:
    """A daemon's descriptors 0 to 2 become /dev/null: stay clear of them, should they have been closed at start."""
    if descriptor > 2:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


_remembered: list[Signals] = []


def remember() -> Signals:
    """The signals of this process: from the first call on they are remembered."""
    if not _remembered:
        _remembered.append(Signals())
    return _remembered[0]
