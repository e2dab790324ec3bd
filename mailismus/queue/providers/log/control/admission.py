"""Admission control of the log. What its rules are: `queue.files.admission`."""

from __future__ import annotations

from mailismus.errors import Unavailable
from mailismus.journal.commit import GroupCommit
from mailismus.journal.pool import SegmentPool
from mailismus.journal.pressure import Pressure
from mailismus.journal.refusals import as_unavailable, is_full
from mailismus.queue.files.admission import LocalAdmission
from mailismus.queue.files.free_space import SpaceWatch


class LogAdmission(LocalAdmission):
    """Of the log."""

    def __init__(self, commits: GroupCommit, pool: SegmentPool, space: SpaceWatch, pressure: Pressure) -> None:
        super().__init__(space)
        self._commits, self._pool, self._pressure = commits, pool, pressure

    def check(self) -> None:
        trouble = self._commits.trouble
        if trouble is not None:
            raise as_unavailable(trouble)
        if self._pressure.is_shedding:
            raise Unavailable(f"the disk is slow: a message would wait {self._pressure.expected_s:.0f} s for it")
        if self._space.is_short:
            raise Unavailable("the file system is full", full=True)
        if self._pool.is_short:
            error = self._pool.error
            raise Unavailable(f"no segment of the log can be made: {error}", error is None or is_full(error))
        if self._is_closing:
            raise Unavailable("the queue is closing")
