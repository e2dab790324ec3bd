"""Compaction: segments in which little lives are emptied, so that the log stays short beside what lives in it.

    log too long -> choose the emptiest segments -> load what lives there -> move it -> a round of marks frees them

A turn is a part of a round (`control.rounds`), which follows its predecessor after `TURN_S` while there is work. It moves at
most `TURN_BYTES` and `TURN_COUNT` envelopes. These go with the batches of mail; what is left of them at the next turn is one
batch of its own.

*Rules*: only segments before the working suffix are emptied, and none before it is known of each what lives there, or while
a search has still to come to it (`index.search_holds`). On a full disk it takes one segment of the reserve at most, and
only for segments that give back more.

*Not here*: which segments (`index.garbage`), the records of a move (`control.moves`).
"""

from __future__ import annotations

from twisted.logger import Logger

from mailismus.journal.commit import GroupCommit
from mailismus.queue.providers.log.control.loading import PieceLoading
from mailismus.queue.providers.log.control.moves import Moves
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.index.garbage import MOST_MOVED, choose_segments
from mailismus.queue.providers.log.index.search_holds import SearchHolds

TURN_S = 1.0
"""Seconds between two turns while there is work."""

TURN_BYTES = 4 << 20
"""Bytes that a turn moves, about."""

TURN_COUNT = 1000
"""Envelopes that a turn moves."""

RESCUE_COUNT = 5000
"""Envelopes of failed segments that a round loads and moves."""

MOST_TURNS_IN_VAIN = 5
"""Turns without any progress, after which the segments that are being emptied are left as they are."""


class Compaction:
    """The compaction of one log."""

    _log = Logger()

    def __init__(
        self,
        segments: LogSegments,
        loading: PieceLoading,
        moves: Moves,
        commits: GroupCommit,
        search_holds: SearchHolds,
    ) -> None:
        self._segments, self._loading, self._moves, self._commits = segments, loading, moves, commits
        self._search_holds = search_holds
        self._emptying: list[int] = []
        self._given_up: set[int] = set()
        """Segments that could not be emptied."""
        self._in_vain = 0
        self.moved = 0
        """Envelopes moved so far."""
        self.emptied = 0
        """Segments emptied so far."""

    @property
    def is_active(self) -> bool:
        """Whether segments are being emptied."""
        return bool(self._emptying)

    async def rescue(self) -> None:
        """Move what lives in failed segments."""
        await self._loading.load_segments(self._segments.failed, RESCUE_COUNT)
        await self._moves.drain()

    async def turn(self) -> None:
        """Do a turn, if there is work."""
        self._moves.push()
        if not self._segments.is_known or self._commits.trouble is not None:
            return
        if not self._go_on():
            self._segments.trim_if_quiet()
            return
        await self._loading.load_segments(self._emptying, TURN_COUNT)
        count = await self._moves.prepare(self._emptying, TURN_BYTES, TURN_COUNT)
        self.moved += count
        if count or self._moves.under_way:
            self._in_vain = 0
            return
        self._in_vain += 1
        if self._in_vain >= MOST_TURNS_IN_VAIN:
            self._log.warn("Segments {numbers} of the queue can't be emptied.", numbers=self._emptying)
            self._given_up.update(self._emptying)
            self._emptying = []

    def _go_on(self) -> bool:
        """Choose segments if none are being emptied. Return whether there is work."""
        segments = self._segments
        held = self._search_holds.segments()
        left = [number for number in self._emptying if segments.is_needed(number)]
        self.emptied += len(self._emptying) - len(left)
        self._emptying = left = [number for number in left if number not in held]
        if left:
            return True
        log = segments.use()
        most_moved = MOST_MOVED if segments.free_beyond_reserve > 0 else log.segment_bytes // 2
        if segments.free_beyond_reserve < 0:
            return False
        usable = [use for use in segments.may_be_emptied() if use.number not in self._given_up | held]
        self._emptying = choose_segments(log, usable, most_moved)
        self._in_vain = 0
        return bool(self._emptying)
