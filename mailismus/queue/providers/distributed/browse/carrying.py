"""What waits for long is carried: moved into the present slice as it is, so that the browse start of its area moves on.

*Rules*: what lives in a slice that ended `LONG_S` ago is moved, with its time, attempts and last reply; it is the same
entry, in a newer share. What is out stays, and what another server has: it is looked for again. A turn moves a bounded
number of entries, oldest first; the next one goes on soon where more is to be done. At the end of a turn, the browse starts
are moved; so they move without any outcome too.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.regular import Regular
from mailismus.queue.providers.distributed.settle.settling import ShareSettling
from mailismus.queue.providers.distributed.view.change import ReadingView

LONG_S = 86_400.0
LOOK_S = 60.0
REST_S = 3600.0
"""Until the next turn where all was moved."""
MOST = 2000
"""Entries that a turn moves, and a share more."""


class Carrying:
    """The carrying of one server. `is_sure`: whether its lease and its clock are; `now`: UTC seconds; `move_starts`: moves
    the browse starts."""

    _log = Logger()

    def __init__(
        self,
        starts: Starts,
        settling: ShareSettling,
        view: Callable[[], ReadingView],
        is_sure: Callable[[], bool],
        now: Callable[[], float],
        move_starts: Callable[[], Coroutine[Deferred[Any], Any, None]],
        reactor: IReactorTime,
    ) -> None:
        self._starts, self._settling, self._view, self._is_sure = starts, settling, view, is_sure
        self._now, self._move_starts, self._reactor = now, move_starts, reactor
        self._looking = Regular(LOOK_S, reactor, "what waits for long can't be carried")
        self._rests_until = float("-inf")
        self.carried = 0
        """Entries that were moved so far."""

    def start(self) -> None:
        """Begin."""
        self._looking.start(self._look, LOOK_S)

    def close(self) -> None:
        """End."""
        self._looking.close()

    async def _look(self) -> None:
        if self._reactor.seconds() < self._rests_until or not self._is_sure():
            return
        moved = 0
        for area in Area:
            moved += await self._carry(area, MOST - moved)
        if moved:
            self._log.info("{count} entries that wait for long were moved into the present slice.", count=moved)
        if moved < MOST:
            self._rests_until = self._reactor.seconds() + REST_S
        await self._move_starts()

    async def _carry(self, area: Area, most: int) -> int:
        """Move what lives in old slices of an area, oldest first; return how many entries."""
        moved, until = 0, self._now() - LONG_S - self._view().slice_window_s
        async for living in self._starts.living(area, until):
            if moved >= most or self._looking.is_closed or not self._is_sure():
                break
            count = await self._settling.carry(living.share, [entry.number for entry in living.entries])
            moved += count
            self.carried += count
        return moved
