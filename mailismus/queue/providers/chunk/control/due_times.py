"""Due times: a file tells the next start which messages it may read last (`format.due_times`).

*Rules*: it is written while the queue is long: soon after a start has read all, then now and then, and at a clean stop; of
all that waits for its time, as it is in memory. A long queue writes it seldom: some kilobytes a second in the mean. Nothing
waits for it but a clean stop.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.queue.providers.chunk.index.rows import RestingRows

INTERVAL_S = 60.0
A_SECOND = 3000
"""Messages of which it is written, for each second from one time to the next."""
LEAST = 1000
"""Messages of which it is written at all: all of fewer are read at once."""


class ChunkDueTimes:
    """Writes the file of one queue. `write` blocks; `is_read`: whether a start has read all of the queue."""

    _log = Logger()

    def __init__(
        self,
        rows: RestingRows,
        is_read: Callable[[], bool],
        write: Callable[[array[int], array[float]], None],
        worker: IWorker,
        reactor: IReactorTime,
    ) -> None:
        self._rows, self._is_read, self._write, self._worker, self._reactor = rows, is_read, write, worker, reactor
        self._timer: IDelayedCall | None = None
        self._was_written = False
        """Whether it was, in this run: a start that is followed by a kill reads all anew else."""
        self.is_idle = True
        """Whether nothing is being written. Read only."""

    def start(self) -> None:
        """Begin."""
        self._wait()

    def finish(self) -> None:
        """Write it once more, if nothing is being written, and never again."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None
        self._begin()

    def _wait(self) -> None:
        seldom = len(self._rows) / A_SECOND if self._was_written else 0.0
        self._timer = self._reactor.callLater(max(INTERVAL_S, seldom), self._tick)

    def _tick(self) -> None:
        self._begin()
        self._wait()

    def _begin(self) -> None:
        if self.is_idle and self._is_read() and len(self._rows) >= LEAST:
            self.is_idle, self._was_written = False, True
            numbers, times = self._rows.copy_due()
            self._worker.run(lambda: self._write(numbers, times)).addCallbacks(self._on_end, self._on_failed)

    def _on_end(self, _: None) -> None:
        self.is_idle = True

    def _on_failed(self, failure: Failure) -> None:
        self.is_idle = True
        if not isinstance(failure.value, OSError):
            self._log.failure("The file of due times was not written", failure)
