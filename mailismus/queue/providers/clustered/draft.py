"""A draft of the clustered queue: small ones stay in memory until they are committed, larger ones stream into their silo.

Bytes that wait, of all drafts together, are bounded by a `Budget`: a draft that would go beyond goes to its silo whatever
its size. A draft in its silo has one act of the worker under way at a time; what comes meanwhile waits in memory, and
whoever writes is asked to wait when that is more than `MOST_BEHIND`.
"""

from __future__ import annotations

import enum
import errno

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.spool.message_file import MessageFileWriter

MOST_BEHIND = 256 * 1024
"""Bytes that may wait for the disk before the writer is asked to wait."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@attrs.define
class Budget:
    """Bytes of memory that some things share."""

    most: int
    used: int = 0

    def has_room(self, size: int) -> bool:
        """Whether so many more fit."""
        return self.used + size <= self.most


class _State(enum.Enum):
    OPEN = enum.auto()
    """Written to."""
    FINISHING = enum.auto()
    """No more comes; being made durable."""
    KEPT = enum.auto()
    """Committed: the queue owns what is on disk."""
    ABANDONED = enum.auto()


class ClusteredDraft:
    """`IDraft` of the clustered queue."""

    __slots__ = (
        "_behind",
        "_budget",
        "_bufsize",
        "_error",
        "_file",
        "_finished",
        "_is_working",
        "_largest_in_memory",
        "_resume",
        "_state",
        "_worker",
        "parts",
        "size_bytes",
        "spool_id",
    )

    def __init__(
        self,
        spool_id: SpoolId,
        file: MessageFileWriter,
        worker: IWorker,
        budget: Budget,
        largest_in_memory: int,
        bufsize: int,
    ) -> None:
        self.spool_id = spool_id
        self.size_bytes = 0
        self.parts: list[bytes] = []
        """The content while it is in memory alone."""
        self._file = file
        self._worker = worker
        self._budget = budget
        self._largest_in_memory = largest_in_memory
        self._bufsize = bufsize
        self._behind: list[bytes] | None = None
        """Bytes not yet handed to the worker; None: the content is in memory alone."""
        self._is_working = False
        self._resume: Deferred[None] | None = None
        self._finished: Deferred[None] | None = None
        self._error: OSError | None = None
        self._state = _State.OPEN

    @property
    def is_in_silo(self) -> bool:
        """The content streams into a message file."""
        return self._behind is not None

    def write(self, data: bytes) -> Deferred[None] | None:
        if self._state is not _State.OPEN:
            return None
        size = len(data)
        self.size_bytes += size
        behind = self._behind
        if behind is None:
            budget = self._budget
            if self.size_bytes <= self._largest_in_memory and budget.used + size <= budget.most:
                budget.used += size
                self.parts.append(data)
                return None
            self._budget.used -= sum(map(len, self.parts))
            behind = self._behind = self.parts
            self.parts = []
        behind.append(data)
        waiting = sum(map(len, behind))
        if not self._is_working and waiting >= self._bufsize:
            self._work()
        elif self._is_working and waiting > MOST_BEHIND and self._resume is None:
            self._resume = Deferred()
            return self._resume
        return None

    def finish(self) -> Deferred[None]:
        """No more comes. Fires when the content is durable where it is to be before the journal speaks of it; fails with
        `Unavailable`."""
        if self._behind is None:
            return succeed(None)
        self._state = _State.FINISHING
        self._finished = Deferred()
        if not self._is_working:
            self._work()
        return self._finished

    def keep(self) -> None:
        """It is committed: what is on disk is the queue's from now on; memory is given back."""
        self._state = _State.KEPT
        self._forget()

    def abandon(self) -> None:
        if self._state in (_State.KEPT, _State.ABANDONED):
            return
        self._state = _State.ABANDONED
        self._forget()
        if self._behind is not None and not self._is_working:
            self._work()

    def _forget(self) -> None:
        if self._behind is None:
            self._budget.used -= sum(map(len, self.parts))
        self.parts = []

    def _work(self) -> None:
        """Hand the worker what waits, and the end of it when it is the end."""
        pieces, self._behind = self._behind or [], []
        state, file, error = self._state, self._file, self._error

        def act() -> None:
            if state is _State.ABANDONED:
                file.discard()
            elif error is None:
                file.append(pieces)
                if state is _State.FINISHING:
                    file.finish()

        self._is_working = True
        self._worker.run(act).addCallbacks(self._worked, self._not_worked, callbackArgs=(state,), errbackArgs=(state,))

    def _not_worked(self, failure: Failure, state: _State) -> None:
        error = failure.value
        self._error = error if isinstance(error, OSError) else OSError(errno.EIO, f"internal error: {error!r}")
        self._worked(None, state)

    def _worked(self, result: None, state: _State) -> None:
        self._is_working = False
        resume, self._resume = self._resume, None
        if resume is not None:
            resume.callback(None)
        if state is _State.ABANDONED:
            return
        if state is _State.FINISHING:
            finished, self._finished = self._finished, None
            assert finished is not None
            if self._error is None:
                finished.callback(None)
                return
            error = self._error
            if self._state is _State.FINISHING:
                self.abandon()
            finished.errback(Unavailable(f"the spool can't be written: {error}", error.errno in _FULL))
        elif self._is_working:
            return  # `resume` wrote, finished or abandoned: never two acts on one file at a time
        elif self._state is not _State.OPEN or sum(map(len, self._behind or ())) >= self._bufsize:
            self._work()
