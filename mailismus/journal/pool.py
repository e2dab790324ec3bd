"""The pool of free segments: created ahead, so that a batch seldom waits for one and deliveries never need space.

*Rules*: `RESERVE` segments are for settlements alone. With no more than those left, and none that can be created, mail is
refused (452 if the disk is full, else 451) while settlements go on. A pool may keep another one for the barrier of the next
start: that needs no free space then.
"""

from __future__ import annotations

import os
from collections import deque

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.interface import IDisk, close_read
from mailismus.disk.presence import Missing, Presence
from mailismus.disk.worker import IWorker
from mailismus.journal.batch import BLOCK
from mailismus.journal.refusals import is_full
from mailismus.journal.segment import READY_NAME, Segment, make_segment
from mailismus.journal.writer import Claim, NoSegment

RESERVE = 2
"""Free segments kept for settlements alone."""

READY = RESERVE + 2
"""Free segments created ahead."""

MOST_FREE = 2 * READY
"""Free segments kept at most; further ones are removed."""

RETRY_S = 3.0
"""Seconds between two attempts to create a segment."""


class SegmentPool:
    """Free segments. `take` is called by the journal's thread, everything else in the reactor's."""

    _log = Logger()

    def __init__(
        self,
        disk: IDisk,
        directory: str,
        size_bytes: int,
        worker: IWorker,
        reactor: IReactorTime,
        presence: Presence | None = None,
        *,
        for_a_start: int = 0,
    ) -> None:
        """`presence`: whether the journal's directory has its name; no segment is created without it. None: not checked.
        `for_a_start`: how many free segments are kept for the next start."""
        self._for_a_start = for_a_start
        self._disk = disk
        self._directory = directory
        self.size_bytes = size_bytes
        self._worker = worker
        self._reactor = reactor
        self._presence = presence
        self._free: deque[Segment] = deque()
        self._is_making = False
        self._is_ensured = False
        """The next segment taken may be the last one."""
        self._made = 0
        self.segments_made = 0
        """Number created in the background so far."""
        self.error: OSError | None = None
        """Why the last attempt to create a segment failed."""

    def __len__(self) -> int:
        return len(self._free)

    def take(self, claim: Claim) -> Segment:
        """A free segment. Raises `NoSegment`."""
        kept = 0 if self._is_ensured else self._for_a_start if claim is Claim.ANY else self.reserve
        if len(self._free) > kept:
            self._is_ensured = False
            return self._free.popleft()
        raise NoSegment(self.error)

    @property
    def reserve(self) -> int:
        """How many free segments mail does not get."""
        return RESERVE + self._for_a_start

    @property
    def is_short(self) -> bool:
        """No more than the reserve is left, and no further segment could be created."""
        return len(self._free) <= self.reserve and self.error is not None

    def adopt(self, segment: Segment) -> None:
        """Take over a free segment. One of another size, or above `MOST_FREE`, is removed."""
        if segment.size_bytes != self.size_bytes or len(self._free) >= MOST_FREE:
            self.remove(segment)
        else:
            segment.header = None
            self._free.append(segment)

    def trim(self) -> None:
        """Remove free segments above `READY`, and those for a start."""
        while len(self._free) > READY + self._for_a_start:
            self.remove(self._free.pop())

    def remove(self, segment: Segment) -> None:
        """Remove a segment."""

        def act() -> None:
            has_name = segment.has_name()
            close_read(segment.file)
            if has_name:  # else the name is gone, or leads to another file
                self._disk.unlink(segment.path)

        self._worker.run(act).addErrback(self._not_removed, segment.path)

    def set_aside(self, segment: Segment, directory: str) -> None:
        """Move a segment with unreadable bytes to this directory, for a recovery by hand."""
        path = os.path.join(directory, os.path.basename(segment.path))

        def act() -> None:
            has_name = segment.has_name()
            close_read(segment.file)
            if has_name:
                self._disk.rename(segment.path, path)

        self._log.error(
            "A journal segment can't be read everywhere: {old} is set aside as {path}", old=segment.path, path=path
        )
        self._worker.run(act).addErrback(self._not_removed, segment.path)

    def _not_removed(self, failure: Failure, path: str) -> None:
        self._log.warn("A journal segment can't be removed: {path}: {error}", path=path, error=failure.value)

    def ensure(self, batch_bytes: int) -> None:
        """Make sure that the next segment taken has room for such a batch, and may be taken; creates one, blocking, if
        necessary: half as long again and again where the disk has no room for more, at last for this batch alone. Raises
        OSError."""
        needed = BLOCK + batch_bytes
        if not self._free or self.size_bytes < needed:
            self._free.appendleft(self._make_shorter(max(self.size_bytes, needed), needed))
        self._is_ensured = True

    def _make_shorter(self, size_bytes: int, needed: int) -> Segment:
        while True:
            try:
                return self._make(size_bytes)
            except OSError as error:
                if not is_full(error) or size_bytes == needed:
                    raise
            size_bytes = max(needed, size_bytes // 2 // BLOCK * BLOCK)

    def close(self) -> None:
        """Close the free segments."""
        while self._free:
            close_read(self._free.popleft().file)

    def top_up(self) -> None:
        """Create segments in the background until `READY` are free, and those for a start. To be called now and then: one
        that could not be begun leaves the pool without a durable batch."""
        if not self._is_making and len(self._free) < READY + self._for_a_start:
            self._is_making = True
            made: Deferred[Segment] = self._worker.run(lambda: self._make(self.size_bytes))
            made.addCallbacks(self._on_made, self._on_failed)

    def _make(self, size_bytes: int) -> Segment:
        self._check()
        names = set(self._disk.list_directory(self._directory))
        while (name := f"{READY_NAME}{self._made}.mqj") in names:
            self._made += 1
        # Another segment may have had this name, and its new one may not be durable yet: if the name were another file's
        # already, a power cut could leave that segment without any.
        self._disk.sync_directory(self._directory)
        try:
            return make_segment(self._disk, self._directory, name, size_bytes)
        except OSError:
            self._check()  # a better reason, and told by others
            raise

    def _check(self) -> None:
        if self._presence is not None:
            self._presence.check()

    def _on_made(self, segment: Segment) -> None:
        self._is_making = False
        self.segments_made += 1
        if self.error is not None:
            self._log.info("Room for the journal again.")
            self.error = None
        self._free.append(segment)
        self.top_up()

    def _on_failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, OSError):
            self._log.failure("Making a journal segment failed", failure)
            self.error = OSError(5, "internal error")
        else:
            if self.error is None and not isinstance(failure.value, Missing):
                self._log.warn("No room for a new journal segment: {error}", error=failure.value)
            self.error = failure.value
        self._reactor.callLater(RETRY_S, self._try_again)

    def _try_again(self) -> None:
        self._is_making = False
        self.top_up()
