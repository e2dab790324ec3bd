"""Admission control: refuses a message before its content is sent, while it could not be committed.

*Rules*: 452 (`full`) for lack of space, 451 for every other reason. Deliveries and settlements are never refused.
"""

from __future__ import annotations

from mailismus.disk.presence import Missing
from mailismus.errors import Unavailable
from mailismus.journal.refusals import is_full
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.providers.chunk.control.upkeep import ChunkUpkeep
from mailismus.queue.providers.chunk.control.work import ChunkWork


def as_unavailable(error: OSError) -> Unavailable:
    """The error for a client."""
    if isinstance(error, Missing):
        return Unavailable(str(error))
    return Unavailable(f"the queue's files can't be written: {error}", is_full(error))


class ChunkAdmission:
    """Raises `Unavailable` if any component cannot take mail."""

    def __init__(self, work: ChunkWork, space: SpaceWatch, upkeep: ChunkUpkeep) -> None:
        self._work, self._space, self._upkeep = work, space, upkeep
        self._is_closing = False

    def close(self) -> None:
        """Admit no further message."""
        self._is_closing = True

    def refusal(self) -> OSError | None:
        """Why no message may be committed: the queue's own code failed."""
        return self._work.bug

    def reason(self) -> str:
        """Why no mail is accepted now; empty: mail is accepted."""
        try:
            self.check()
        except Unavailable as error:
            return str(error)
        return ""

    def check(self) -> None:
        """Raise `Unavailable` if a message could not be committed now."""
        trouble = self._work.bug or self._upkeep.missing or self._work.trouble
        if trouble is not None:
            raise as_unavailable(trouble)
        if self._space.is_short:
            raise Unavailable("the file system is full", full=True)
        if self._is_closing:
            raise Unavailable("the queue is closing")
