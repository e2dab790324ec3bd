"""A stream: the content of one large draft on its way to its message file, in pieces as they come.

One call of the worker at a time; bytes written meanwhile stay in memory, and beyond `MAX_UNWRITTEN`, or when the shared
budget is used up, the writer is asked to wait.
"""

from __future__ import annotations

import enum
import errno
from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.errors import Unavailable
from mailismus.spool.budget import Budget

MAX_UNWRITTEN = 256 * 1024
"""Bytes that may wait for the disk before the writer is asked to wait."""

SMALL = 512
"""Pieces smaller than this are joined, so that a client that sends byte by byte does not fill the memory with objects."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _State(enum.Enum):
    OPEN = enum.auto()
    """Accepts writes."""
    FINISHING = enum.auto()
    """Complete and being made durable. From here on only the queue can drop it."""
    KEPT = enum.auto()
    """Committed: the queue owns the bytes on disk."""
    ABANDONED = enum.auto()
    """Given up by its writer before a commit, or by the queue after a failed one."""


class StreamedFile(Protocol):
    """A message file while it is written, by one call at a time. Its methods block."""

    def append(self, pieces: Sequence[bytes]) -> None:
        """Append to the content. Raises OSError."""

    def finish(self, numbers: Sequence[int]) -> None:
        """Complete the file, as `SiloStream.finish`. Raises OSError."""

    def discard(self) -> None:
        """Remove it, finished or not. Raises OSError; harmless when there is none."""


class SiloStream:
    """Writes one message file. `budget`: bytes of all streams that wait for the disk."""

    __slots__ = (
        "_budget",
        "_bufsize",
        "_error",
        "_file",
        "_finished",
        "_is_working",
        "_numbers",
        "_resume",
        "_state",
        "_unwritten",
        "_waiting",
        "_worker",
    )

    def __init__(self, file: StreamedFile, worker: IWorker, budget: Budget, bufsize: int, pieces: list[bytes]) -> None:
        """`pieces`: the content so far. `bufsize`: bytes that wait at least before they are written."""
        self._file = file
        self._worker = worker
        self._budget = budget
        self._bufsize = bufsize
        self._unwritten = pieces
        """Pieces that the worker does not have yet."""
        self._waiting = sum(map(len, pieces))
        """Bytes of `_unwritten`."""
        budget.add(self._waiting)
        self._is_working = False
        self._resume: Deferred[None] | None = None
        self._finished: Deferred[None] | None = None
        self._error: OSError | None = None
        self._numbers: Sequence[int] = ()
        self._state = _State.OPEN

    def write(self, data: bytes) -> Deferred[None] | None:
        """As `IDraft.write`."""
        join(self._unwritten, data)
        size = len(data)
        self._waiting += size
        budget = self._budget
        budget.add(size)
        if not self._is_working and (self._waiting >= self._bufsize or budget.is_over):
            self._work()
        if self._is_working and self._resume is None and (self._waiting > MAX_UNWRITTEN or budget.is_over):
            resume = self._resume = Deferred()
            return resume
        return None

    def finish(self, numbers: Sequence[int]) -> Deferred[None]:
        """End the content. `numbers`: the recipients that get a name each for the message file. Fires when the content is as
        durable as the journal record needs it; fails with `Unavailable`."""
        self._state = _State.FINISHING
        self._numbers = numbers
        self._finished = Deferred()
        if not self._is_working:
            self._work()
        return self._finished

    def keep(self) -> None:
        """Mark it committed: the queue owns the bytes on disk."""
        self._state = _State.KEPT

    def drop(self) -> None:
        """Remove the bytes on disk. Harmless when repeated."""
        if self._state in (_State.KEPT, _State.ABANDONED):
            return
        self._state = _State.ABANDONED
        if not self._is_working:
            self._work()

    def _work(self) -> None:
        """Give the worker the pieces that wait, and the end of the content once it is known."""
        pieces, self._unwritten = self._unwritten, []
        size, self._waiting = self._waiting, 0
        state, file, error, numbers = self._state, self._file, self._error, self._numbers

        def act() -> None:
            if state is _State.ABANDONED:
                file.discard()
            elif error is None:
                file.append(pieces)
                if state is _State.FINISHING:
                    file.finish(numbers)

        self._is_working = True
        self._worker.run(act).addCallbacks(
            self._worked, self._not_worked, callbackArgs=(state, size), errbackArgs=(state, size)
        )

    def _not_worked(self, failure: Failure, state: _State, size: int) -> None:
        error = failure.value
        self._error = error if isinstance(error, OSError) else OSError(errno.EIO, f"internal error: {error!r}")
        self._worked(None, state, size)

    def _worked(self, result: None, state: _State, size: int) -> None:
        self._is_working = False
        self._budget.give_back(size)
        resume, self._resume = self._resume, None
        if resume is not None:
            resume.callback(None)
        if state is _State.ABANDONED:
            return
        if state is _State.FINISHING:
            finished, self._finished = self._finished, None
            assert finished is not None
            if self._error is not None and self._state is _State.FINISHING:
                self._state = _State.ABANDONED
            if self._state is not _State.ABANDONED:
                finished.callback(None)
                return
            self._work()  # removes the file
            error = self._error or OSError(errno.ECANCELED, "dropped meanwhile")
            finished.errback(Unavailable(f"the spool can't be written: {error}", error.errno in _FULL))
        elif self._is_working:
            return  # `resume` wrote, finished or abandoned: never two calls on one file at a time
        elif self._state is not _State.OPEN or self._waiting >= self._bufsize:
            self._work()


def join(pieces: list[bytes], data: bytes) -> None:
    """Append a piece, joined to the last one if both are small."""
    if len(data) < SMALL and pieces and len(pieces[-1]) < 8 * SMALL:
        pieces[-1] += data
    else:
        pieces.append(data)
