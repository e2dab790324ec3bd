"""Acceptance: whether a message may begin, asked before its content is sent, so that the client keeps its mail.

*Rules*: 452 (`full`) where room is wanting, 451 for any other trouble. Nothing here holds up what empties the queue.
"""

from __future__ import annotations

import errno

from mailismus.disk.presence import Missing
from mailismus.errors import Unavailable
from mailismus.journal.commit import GroupCommit
from mailismus.journal.pool import SegmentPool
from mailismus.journal.pressure import Pressure
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.providers.clustered.checkpoint.run import CheckpointRunner

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_full(error: OSError) -> bool:
    """Whether it tells of a want of room."""
    return error.errno in _FULL


def as_unavailable(trouble: OSError) -> Unavailable:
    """What a client is to be told of the journal's trouble."""
    if isinstance(trouble, Missing):
        return Unavailable(str(trouble))
    return Unavailable(f"the journal can't be written: {trouble}", is_full(trouble))


class AdmissionControl:
    """Whoever knows of a reason is asked. `is_closing`: nothing begins any more."""

    def __init__(
        self, commits: GroupCommit, checkpoints: CheckpointRunner, pool: SegmentPool, space: SpaceWatch, pressure: Pressure
    ) -> None:
        self._commits, self._checkpoints, self._pool = commits, checkpoints, pool
        self._space, self._pressure = space, pressure
        self.is_closing = False

    def reason(self) -> str:
        """Why no mail is accepted now; empty: it is."""
        try:
            self.check()
        except Unavailable as error:
            return str(error)
        return ""

    def check(self) -> None:
        """Raises `Unavailable` where a message could not be committed now, or not soon."""
        trouble = self._commits.trouble
        if trouble is not None:
            raise as_unavailable(trouble)
        if self._pressure.is_shedding:
            raise Unavailable(f"the disk is slow: a message would wait {self._pressure.expected_s:.0f} s for it")
        if self._checkpoints.is_full:
            raise Unavailable("the journal is twice as long as `maxsize`: the disk is behind", full=True)
        if self._space.is_short:
            raise Unavailable("the file system is full", full=True)
        if self._pool.is_short:
            error = self._pool.error
            raise Unavailable(f"no journal segment can be made: {error}", error is None or is_full(error))
        if self.is_closing:
            raise Unavailable("the queue is closing")
