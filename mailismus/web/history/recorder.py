"""The recorder: takes a sample each minute, and keeps those of the last day in the state file `history`.

*Rules*: a sample is made of an overview, which costs the same whatever waits in the queue. The file is written every
`WRITE_EVERY` samples and at a clean stop, in a thread of its own, and never synced: it may be lost at any time. One that
does not check is told in one line, and never refuses a start; so is one that can't be written, once.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import Corrupt
from mailismus.observe.figures import compare
from mailismus.observe.overview import Overview
from mailismus.queue.files.state_file import HISTORY, read_state, write_state
from mailismus.web.history.samples import EVERY_S, FORMAT, KEPT, Sample, believed, format_sample, parse_sample, sample_of

WRITE_EVERY = 5
STOP_S = 5.0
"""How long a stop waits for the last write."""


class Recorder:
    """Records in a directory; None: the queue keeps nothing, nor does this. `take`: makes an overview of this moment.
    `worker`: one thread of its own."""

    _log = Logger()

    def __init__(
        self, take: Callable[[], Overview], directory: str | None, disk: IDisk, worker: IWorker, clock: IReactorTime
    ) -> None:
        """`clock`: UTC seconds."""
        self._take, self._directory = take, directory
        self._disk, self._worker, self._clock = disk, worker, clock
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._last: Overview | None = None
        self._timer: IDelayedCall | None = None
        self._unwritten = 0
        self._writing: Deferred[None] | None = None
        self._has_trouble = False

    @property
    def samples(self) -> Sequence[Sample]:
        """Those of the last day, in order. A copy."""
        return believed(self._samples, self._clock.seconds())

    def load(self) -> None:
        """Read the file. Blocks. Raises nothing that a file can cause."""
        if self._directory is None:
            return
        path = os.path.join(self._directory, HISTORY)
        try:
            found = read_state(self._disk, path)
        except (Corrupt, OSError) as error:
            text = error.text if isinstance(error, Corrupt) else error.strerror or str(error)
            self._log.warn("{path} does not tell the history of the last day: {error}", path=path, error=text)
            return
        if found is None:
            return
        if found.name != HISTORY or found.format > FORMAT:
            self._log.warn("{path} is of another kind or of a newer version: it is written anew", path=path)
            return
        parsed = [sample for line in found.lines if (sample := parse_sample(line)) is not None]
        self._samples.extend(believed(parsed, self._clock.seconds()))

    def start(self) -> None:
        """Begin to record, in the process that will serve."""
        if self._directory is not None:
            self._worker.start()
        self._last = self._take()
        self._timer = self._clock.callLater(EVERY_S, self._sample)

    def stop(self) -> Deferred[None]:
        """Record no more, and write what was recorded. Fires when that is done, or after `STOP_S`. Never fails."""
        if self._timer is None:
            return succeed(None)
        if self._timer.active():
            self._timer.cancel()
        self._timer = None
        done: Deferred[None] = Deferred()
        timer = self._clock.callLater(STOP_S, done.callback, None)

        def in_time(_: object) -> None:
            if timer.active():
                timer.cancel()
                done.callback(None)

        Deferred.fromCoroutine(self._write_last()).addCallback(in_time)
        return done.addCallback(lambda _: self._worker.leave())

    def _sample(self) -> None:
        self._timer = self._clock.callLater(EVERY_S, self._sample)
        try:
            overview = self._take()
        except Exception:  # a bug of ours: the next one may be well
            self._log.failure("No sample of the history was taken")
            return
        self._samples.append(sample_of(compare(self._last, overview)))
        self._last = overview
        self._unwritten += 1
        if self._unwritten >= WRITE_EVERY and self._writing is None and self._directory is not None:
            self._begin()

    def _begin(self) -> Deferred[None]:
        """Begin to write. Fires when that has ended."""
        writing: Deferred[None] = Deferred()
        self._writing = writing
        Deferred.fromCoroutine(self._write())
        return writing

    async def _write(self) -> None:
        directory, samples = self._directory, self.samples
        assert directory is not None
        self._unwritten = 0
        try:
            await self._worker.run(
                lambda: write_state(self._disk, directory, HISTORY, FORMAT, [format_sample(one) for one in samples])
            )
        except OSError as error:
            if not self._has_trouble:
                self._has_trouble = True
                words = "The history of the last day can't be written to {path}: {error}"
                self._log.warn(words, path=os.path.join(directory, HISTORY), error=error.strerror or error)
        except Exception:
            self._log.failure("The history of the last day can't be written")
        else:
            self._has_trouble = False
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.callback(None)

    async def _write_last(self) -> None:
        if self._directory is None:
            return
        if self._writing is not None:
            await self._writing
        if self._unwritten:
            await self._begin()
