"""A draft of the clustered queue: a small one stays in memory until its commit, a larger one streams into its silo.

Two `Budget`s bound the memory of all drafts together. One is for drafts in memory: a draft that exceeds it goes to its silo,
whatever its size. The other is for bytes on their way to a silo: beyond it, the writer is asked to wait for each piece. A
draft in its silo has one call in the worker at a time; bytes written meanwhile stay in memory, and beyond `MAX_UNWRITTEN`
the writer is asked to wait.
"""

from __future__ import annotations

import enum
import errno
from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.spool.message_file import MessageFileWriter

MAX_UNWRITTEN = 256 * 1024
"""Bytes that may wait for the disk before the writer is asked to wait."""

SMALL = 512
"""Pieces smaller than this are joined, so that a client that sends byte by byte does not fill the memory with objects."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@attrs.define
class Budget:
    """A limit, in bytes of memory, that several objects share."""

    limit: int
    used: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the limit is exceeded."""
        return self.used > self.limit

    def has_room(self, size: int) -> bool:
        """Whether this many more bytes fit."""
        return self.used + size <= self.limit

    def take(self, size: int) -> bool:
        """Use so many more, if they fit; return whether they do."""
        has_room = self.has_room(size)
        if has_room:
            self.used += size
        return has_room

    def give_back(self, size: int) -> None:
        """So many are used no more."""
        self.used -= size


class _State(enum.Enum):
    OPEN = enum.auto()
    """Accepts writes."""
    FINISHING = enum.auto()
    """Complete and being made durable. From here on only the queue can drop it."""
    KEPT = enum.auto()
    """Committed: the queue owns the bytes on disk."""
    ABANDONED = enum.auto()
    """Given up by its writer before a commit, or by the queue after a failed one."""


class SpoolDraft:
    """`IDraft` of the clustered queue."""

    __slots__ = (
        "_budget",
        "_bufsize",
        "_error",
        "_file",
        "_finished",
        "_is_working",
        "_largest_in_memory",
        "_numbers",
        "_resume",
        "_state",
        "_unwritten",
        "_unwritten_budget",
        "_waiting",
        "_worker",
        "parts",
        "spool_id",
        "stored_bytes",
    )

    def __init__(
        self,
        spool_id: SpoolId,
        file: MessageFileWriter,
        worker: IWorker,
        budget: Budget,
        unwritten_budget: Budget,
        largest_in_memory: int,
        bufsize: int,
    ) -> None:
        self.spool_id = spool_id
        self.stored_bytes = 0
        self.parts: list[bytes] = []
        """The content while it is in memory alone."""
        self._file = file
        self._worker = worker
        self._budget = budget
        self._unwritten_budget = unwritten_budget
        self._largest_in_memory = largest_in_memory
        self._bufsize = bufsize
        self._unwritten: list[bytes] | None = None
        """Pieces that the worker does not have yet; None: the content is in memory alone."""
        self._waiting = 0
        """Bytes of `_unwritten`."""
        self._is_working = False
        self._resume: Deferred[None] | None = None
        self._finished: Deferred[None] | None = None
        self._error: OSError | None = None
        self._numbers: Sequence[int] = ()
        self._state = _State.OPEN

    @property
    def is_in_silo(self) -> bool:
        """Whether the content streams into a message file."""
        return self._unwritten is not None

    def write(self, data: bytes) -> Deferred[None] | None:
        if self._state is not _State.OPEN:
            return None
        size = len(data)
        self.stored_bytes += size
        unwritten = self._unwritten
        if unwritten is None:
            budget = self._budget
            if self.stored_bytes <= self._largest_in_memory and budget.used + size <= budget.limit:
                budget.used += size
                _join(self.parts, data)
                return None
            unwritten = self._start_streaming(self.stored_bytes - size)
        _join(unwritten, data)
        self._waiting += size
        budget = self._unwritten_budget
        budget.used += size
        if not self._is_working and (self._waiting >= self._bufsize or budget.is_over):
            self._work()
        if self._is_working and self._resume is None and (self._waiting > MAX_UNWRITTEN or budget.is_over):
            resume = self._resume = Deferred()
            return resume
        return None

    def _start_streaming(self, size: int) -> list[bytes]:
        """Queue the `size` bytes held in memory for the silo."""
        self._budget.used -= size
        self._unwritten_budget.used += size
        self._waiting = size
        unwritten, self.parts = self.parts, []
        self._unwritten = unwritten
        return unwritten

    def finish(self, numbers: Sequence[int] = ()) -> Deferred[None]:
        """End the content. `numbers`: the recipients that get a name each for its message file, if it has one. Fires when
        the content is as durable as the journal record needs it; fails with `Unavailable`."""
        self._state = _State.FINISHING
        self._numbers = numbers
        if self._unwritten is None:
            return succeed(None)
        self._finished = Deferred()
        if not self._is_working:
            self._work()
        return self._finished

    def keep(self) -> None:
        """Mark it committed: the queue owns the bytes on disk. Frees its memory."""
        self._state = _State.KEPT
        self._forget()

    def abandon(self) -> None:
        if self._state is _State.OPEN:
            self.drop()

    def drop(self) -> None:
        """Remove the bytes on disk after a failed commit. Harmless when repeated."""
        if self._state in (_State.KEPT, _State.ABANDONED):
            return
        self._state = _State.ABANDONED
        self._forget()
        if self._unwritten is not None and not self._is_working:
            self._work()

    def _forget(self) -> None:
        if self.parts:
            self._budget.used -= self.stored_bytes
            self.parts = []

    def _work(self) -> None:
        """Give the worker the pieces that wait, and the end of the content once it is known."""
        pieces, self._unwritten = self._unwritten or [], []
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
        self._unwritten_budget.used -= size
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


class RefusedDrafts:
    """Drafts whose commits failed. If their batch may still be found on disk (its barrier failed), their message files stay
    until a later batch, which denies it, is durable: after a crash before that, the messages may come back whole.
    """

    def __init__(self) -> None:
        self._kept: list[SpoolDraft] = []

    def add(self, drafts: Sequence[SpoolDraft], *, may_be_found: bool) -> None:
        """Add drafts of a failed commit."""
        for draft in drafts:
            if may_be_found and draft.is_in_silo:
                self._kept.append(draft)
            else:
                draft.drop()

    def drop(self) -> None:
        """Drop them all: a later batch is durable."""
        if self._kept:
            kept, self._kept = self._kept, []
            for draft in kept:
                draft.drop()


def _join(pieces: list[bytes], data: bytes) -> None:
    """Append a piece, joined to the last one if both are small."""
    if len(data) < SMALL and pieces and len(pieces[-1]) < 8 * SMALL:
        pieces[-1] += data
    else:
        pieces.append(data)
