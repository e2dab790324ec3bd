"""The signal of other writers: a named pipe in the queue's directory, read by the reactor of the running server.

*Rules*: without it (no room for its name, or something else is there) the server finds new messages a second later.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.internet.interfaces import IReactorFDSet, IReadDescriptor
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.disk.trigger import Trigger
from mailismus.queue.providers.chunk.format.version import TRIGGER


@implementer(IReadDescriptor)
class ChunkSignal:
    """Calls `look` in the reactor's thread, soon after a writer gave the signal."""

    _log = Logger()

    def __init__(self, rootpath: str, poll: IReactorFDSet, look: Callable[[], None]) -> None:
        self._path, self._poll, self._look = os.path.join(rootpath, TRIGGER), poll, look
        self._trigger: Trigger | None = None

    def start(self) -> None:
        """Listen."""
        try:
            self._trigger = Trigger(self._path)
        except OSError as error:
            self._log.warn("New messages of other programs are found a second later: {error}", error=error)
            return
        self._poll.addReader(self)

    def stop(self) -> None:
        """Listen no more; the name goes. Harmless when repeated."""
        trigger, self._trigger = self._trigger, None
        if trigger is None:
            return
        self._poll.removeReader(self)
        trigger.remove()
        trigger.close()

    def fileno(self) -> int:
        return self._trigger.fileno() if self._trigger is not None else -1

    def logPrefix(self) -> str:
        return "chunk"

    def doRead(self) -> None:
        """The pipe is readable."""
        if self._trigger is not None:
            self._trigger.drain()
            self._look()

    def connectionLost(self, reason: Failure) -> None:
        self.stop()
