"""The walk that removes stray message files after a start, a silo at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.spool.silo import SILO_COUNT
from mailismus.spool.sweep import sweep_silo


class StrayWalk:
    """One walk over the silos. `removed` counts as it goes."""

    _log = Logger()

    def __init__(
        self, disk: IDisk, root: str, worker: IWorker, before: SpoolId, is_needed: Callable[[SpoolId], bool]
    ) -> None:
        self._disk = disk
        self._root = root
        self._worker = worker
        self._before = before
        self._is_needed = is_needed
        self.removed = 0
        self._is_stopped = False

    def start(self) -> Deferred[None]:
        """Begin; fires when it is over, and never fails: what can't be read is logged, and left for the next start."""
        return Deferred.fromCoroutine(self._walk())

    def stop(self) -> None:
        """No further silo."""
        self._is_stopped = True

    async def _walk(self) -> None:
        for silo in range(SILO_COUNT):
            if self._is_stopped:
                return
            try:
                self.removed += await self._worker.run(partial(self._sweep, silo))
            except OSError as error:
                self._log.warn("Silo {silo} can't be swept: {error}", silo=silo, error=error)
        if self.removed:
            self._log.info("Removed {count} message files that no message needs.", count=self.removed)

    def _sweep(self, silo: int) -> int:
        return sweep_silo(self._disk, self._root, silo, self._before, self._is_needed)
