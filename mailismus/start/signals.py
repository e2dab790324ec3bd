"""Signals that ask the running server for an action: kept from the beginning of a start, answered once the server runs.

The handler writes the signal's number into a pipe, which the reactor reads when it runs. The pipe is made before the fork of
a daemon and outlives it: the process that serves answers the signals of every process of the start.

*Rules*: equal signals that wait are one. SIGTERM and SIGINT end a start at once and silently, as they end any program: the
next start finds the queue as after a crash.

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

if TYPE_CHECKING:  # an import here is executed before signals are kept
    from mailismus.start.server import Reactor

Actions = Mapping[signal.Signals, Callable[[], None]]

ASKING = (signal.SIGUSR1, signal.SIGHUP)
_ROOM = 65536
"""Capacity of a pipe in bytes."""


@implementer(IReadDescriptor)
class Signals:
    """The signals of one process and of those that it forks. It keeps those of `ASKING` from now on. Make it in the main
    thread."""

    _log = Logger()

    def __init__(self) -> None:
        self._reader, self._writer = (_move_above_standard(descriptor) for descriptor in os.pipe())
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._actions: dict[int, Callable[[], None]] = {}
        self._is_interrupt_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        for number in ASKING:
            signal.signal(number, self._on_signal)
        if self._is_interrupt_python:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def serve(self, reactor: Reactor, actions: Actions) -> None:
        """Answer each of `ASKING` by its action once this reactor runs, earlier signals first. SIGTERM and SIGINT are the
        reactor's from now on."""
        self.answer(actions)
        if self._is_interrupt_python:  # otherwise the reactor would respect a handler that is not Python's
            signal.signal(signal.SIGINT, signal.default_int_handler)
        reactor.addReader(self)
        reactor.callWhenRunning(self.doRead)

    def answer(self, actions: Actions) -> None:
        """Answer other signals too, from now on."""
        for number, action in actions.items():
            self._actions[number] = action
            signal.signal(number, self._on_signal)

    def fileno(self) -> int:
        """Called by the reactor."""
        return self._reader

    def doRead(self) -> None:
        """Called by the reactor when there are signals. An exception of an action is logged."""
        try:
            numbers = os.read(self._reader, _ROOM)
        except BlockingIOError:
            return
        for number in dict.fromkeys(numbers):
            try:
                self._actions[number]()
            except Exception:  # a bug of ours must not block the other signals
                self._log.failure("Signal {number} could not be answered", number=number)

    def connectionLost(self, reason: Failure) -> None:
        """Called by the reactor at its end. The pipe stays open, for a signal may still come."""

    def logPrefix(self) -> str:
        """Called by the reactor."""
        return "signals"

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        try:
            os.write(self._writer, bytes((number,)))
        except BlockingIOError:
            pass  # the pipe is full, and this signal is in it


def _move_above_standard(descriptor: int) -> int:
    """Move a descriptor above 2: a daemon's descriptors 0 to 2 become /dev/null, and may have been closed at start."""
    if descriptor > 2:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


_remembered: list[Signals] = []


def remember() -> Signals:
    """The `Signals` of this process. The first call makes them, and signals are kept from then on."""
    if not _remembered:
        _remembered.append(Signals())
    return _remembered[0]
