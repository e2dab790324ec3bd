"""Free space: below `minfree` mail is refused (452). Deliveries go on, since they need no space."""

from __future__ import annotations

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import MinFree, QueueSettings
from mailismus.disk.interface import IDisk, Space
from mailismus.disk.worker import IWorker

INTERVAL_S = 1.0
"""Seconds between two readings."""


def is_below(space: Space, minfree: MinFree) -> bool:
    """Whether fewer bytes are free than `minfree` asks for; with a share, bytes or inodes."""
    if space.free_bytes < max(minfree.size_bytes, int(space.size_bytes * minfree.share)):
        return True
    return bool(space.inodes) and space.free_inodes < space.inodes * minfree.share


class SpaceWatch:
    """Reads the free space of the file systems of queue and spool once a second."""

    _log = Logger()

    def __init__(self, disk: IDisk, settings: QueueSettings, worker: IWorker, reactor: IReactorTime) -> None:
        self._disk = disk
        self._paths = (settings.rootpath, settings.spool.rootpath)
        self._minfree = settings.minfree
        self._worker = worker
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self._is_stopped = False
        self.is_short = False
        """Less is free than `minfree` asks for."""
        self.spaces: tuple[Space, ...] = ()
        """Of queue and spool, as of the last reading; empty before the first, or when `minfree` is off."""
        self._is_blind = False

    def start(self) -> None:
        """Begin to read, unless `minfree` is off."""
        if self._minfree.share or self._minfree.size_bytes:
            self._look()

    def stop(self) -> None:
        """Read no more."""
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _look(self) -> None:
        self._worker.run(lambda: [self._disk.space(path) for path in self._paths]).addCallbacks(
            self._on_looked, self._on_failed
        )

    def _on_looked(self, spaces: list[Space]) -> None:
        self.spaces = tuple(spaces)
        self._is_blind = False
        is_short = any(is_below(space, self._minfree) for space in spaces)
        if is_short != self.is_short:
            self.is_short = is_short
            if is_short:
                self._log.warn("Less space is free than `minfree` asks for; no mail is accepted until there is more.")
            else:
                self._log.info("Enough space is free again; mail is accepted.")
        self._look_later()

    def _on_failed(self, failure: Failure) -> None:
        if not self._is_blind:
            self._is_blind = True
            self._log.warn("Free space can't be read: {error}", error=failure.value)
        self._look_later()

    def _look_later(self) -> None:
        if not self._is_stopped:
            self._timer = self._reactor.callLater(INTERVAL_S, self._look)
