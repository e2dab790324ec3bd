"""Spool ids of an epoch, and the next epoch in time: it is durable before its first use."""

from __future__ import annotations

from functools import partial

from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.interface import IDirectory
from mailismus.disk.worker import IWorker
from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.chunk.write.epochs import take_epoch

RESERVE_AT = 0xF000_0000
"""Counter at which the next epoch is taken."""
_LAST = 0xFFFF_FFFF


class ChunkNames:
    """Hands out spool ids. `epoch` is durable; `worker` takes the next one."""

    _log = Logger()

    def __init__(self, epoch: int, directory: IDirectory, worker: IWorker) -> None:
        self.epoch = epoch
        self._directory, self._worker = directory, worker
        self._counter = 0
        self._next_epoch: int | None = None
        self._is_taking = False

    def next(self) -> SpoolId:
        """A new id. Raises `Unavailable` while there is none."""
        if self._counter >= RESERVE_AT and self._next_epoch is None and not self._is_taking:
            self._is_taking = True
            self._worker.run(partial(take_epoch, self._directory, self.epoch)).addCallbacks(self._taken, self._not_taken)
        if self._counter == _LAST:
            if self._next_epoch is None:
                raise Unavailable("no spool id is left until the next epoch is durable")
            self.epoch, self._next_epoch, self._counter = self._next_epoch, None, 0
        self._counter += 1
        return SpoolId((self.epoch << 32) | self._counter)

    def rise_above(self, epoch: int) -> None:
        """A message of this epoch was found: where it is not lower than ours, the files of epochs were lost. No id is given
        until a higher one is durable."""
        if epoch < self.epoch or self._is_taking:
            return
        self._log.error("Messages of later epochs than that of this start were found: {epoch}.", epoch=epoch)
        self._counter, self._next_epoch, self._is_taking = _LAST, None, True
        self._worker.run(partial(take_epoch, self._directory, epoch)).addCallbacks(self._taken, self._not_taken)

    def _taken(self, epoch: int) -> None:
        self._is_taking = False
        self._next_epoch = epoch

    def _not_taken(self, failure: Failure) -> None:
        self._is_taking = False
        self._log.warn("The next epoch of spool ids can't be taken: {error}", error=failure.value)
