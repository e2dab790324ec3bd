"""Admission control of the queue of chunks. What its rules are: `queue.files.admission`."""

from __future__ import annotations

from mailismus.disk.presence import Missing
from mailismus.errors import Unavailable
from mailismus.journal.refusals import is_full
from mailismus.queue.files.admission import LocalAdmission
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.providers.chunk.control.upkeep import ChunkUpkeep
from mailismus.queue.providers.chunk.control.work import ChunkWork


def as_unavailable(error: OSError) -> Unavailable:
    """The error for a client."""
    if isinstance(error, Missing):
        return Unavailable(str(error))
    return Unavailable(f"the queue's files can't be written: {error}", is_full(error))


class ChunkAdmission(LocalAdmission):
    """Of the queue of chunks."""

    def __init__(self, work: ChunkWork, space: SpaceWatch, upkeep: ChunkUpkeep) -> None:
        super().__init__(space)
        self._work, self._upkeep = work, upkeep

    def refusal(self) -> OSError | None:
        """Why no message may be committed: the queue's own code failed."""
        return self._work.bug

    def check(self) -> None:
        trouble = self._work.bug or self._upkeep.missing or self._work.trouble
        if trouble is not None:
            raise as_unavailable(trouble)
        if self._space.is_short:
            raise Unavailable("the file system is full", full=True)
        if self._is_closing:
            raise Unavailable("the queue is closing")
