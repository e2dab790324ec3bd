"""Admission control: refuses a message before its content is sent, while it could not be committed. The client keeps its
mail.

*Rules*: 452 (`full`) for lack of space, 451 for every other reason. Deliveries and settlements are never refused.
"""

from __future__ import annotations

from mailismus.errors import Unavailable
from mailismus.journal.commit import GroupCommit
from mailismus.journal.pool import SegmentPool
from mailismus.journal.pressure import Pressure
from mailismus.journal.refusals import as_unavailable, is_full
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.providers.clustered.checkpoint.segments import JournalSegments


class AdmissionControl:
    """Raises `Unavailable` if any component cannot take mail."""

    def __init__(
        self, commits: GroupCommit, segments: JournalSegments, pool: SegmentPool, space: SpaceWatch, pressure: Pressure
    ) -> None:
        self._commits, self._segments, self._pool = commits, segments, pool
        self._space, self._pressure = space, pressure
        self._is_closing = False

    def close(self) -> None:
        """Admit no further message."""
        self._is_closing = True

    def reason(self) -> str:
        """Return why no mail is accepted now; empty: mail is accepted."""
        try:
            self.check()
        except Unavailable as error:
            return str(error)
        return ""

    def check(self) -> None:
        """Raise `Unavailable` if a message could not be committed now, or only after a long wait."""
        trouble = self._commits.trouble
        if trouble is not None:
            raise as_unavailable(trouble)
        if self._pressure.is_shedding:
            raise Unavailable(f"the disk is slow: a message would wait {self._pressure.expected_s:.0f} s for it")
        if self._segments.is_full:
            raise Unavailable("the journal is twice as long as `maxsize`: the disk is behind", full=True)
        if self._space.is_short:
            raise Unavailable("the file system is full", full=True)
        if self._pool.is_short:
            error = self._pool.error
            raise Unavailable(f"no journal segment can be made: {error}", error is None or is_full(error))
        if self._is_closing:
            raise Unavailable("the queue is closing")
