"""How far this server's clock is from the database's.

*Rules*: it is looked at each half minute. The time between question and answer counts for this server: only what is beyond
both is a difference. What is removed for good is removed by the clock that is behind: a server goes on with a wrong one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.logger import Logger

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.stores.rows import IRows

MOST_S = 60.0
BEHIND_S = 240.0
"""Less than slices and slots of the past wait for rows that come late."""


async def surely_now(rows: IRows, now: Callable[[], float]) -> float:
    """UTC seconds by the clock of this server or by the database's, whichever is behind. Raises `NotDone`."""
    return min(now(), await rows.now())


async def refuse_wrong_clock(rows: IRows, now: Callable[[], float]) -> None:
    """Raise `StartError` (75) where the clock of this host is as far off as that of a server that takes no mail: rows would
    come into slices where nobody finds them. Raises `NotDone`."""
    begun = now()
    ahead_s = _ahead(begun, await rows.now(), now())
    if abs(ahead_s) >= MOST_S:
        raise StartError(os.EX_TEMPFAIL, f"{_difference('this host', ahead_s)}: set it right; nothing was done")


class DatabaseClock:
    """What is known of the difference. `now`: UTC seconds of this server."""

    _log = Logger()

    def __init__(self, rows: IRows, now: Callable[[], float]) -> None:
        self._rows, self._now = rows, now
        self.ahead_s = 0.0
        """Seconds that this server is ahead of the database, as of the last look; negative: behind."""

    @property
    def is_off(self) -> bool:
        """Whether what this server writes may be taken for another time's."""
        return abs(self.ahead_s) >= MOST_S

    @property
    def is_behind(self) -> bool:
        """Whether what this server writes may come into slices and slots that are over, where nobody finds it."""
        return self.ahead_s <= -BEHIND_S

    @property
    def difference(self) -> str:
        """The difference, in words."""
        return _difference("this server", self.ahead_s)

    async def look(self) -> None:
        """Compare. Raises `NotDone`."""
        begun = self._now()
        there = await self._rows.now()
        was_off, self.ahead_s = self.is_off, _ahead(begun, there, self._now())
        if self.is_off and not was_off:
            self._log.critical("No mail is accepted: {difference}. Set it right.", difference=self.difference)
        elif was_off and not self.is_off:
            self._log.warn("Mail is accepted again: the clocks of this server and the database agree.")


def _ahead(begun: float, there: float, ended: float) -> float:
    if there > max(begun, ended):
        return max(begun, ended) - there
    return max(0.0, min(begun, ended) - there)


def _difference(whose: str, ahead_s: float) -> str:
    way = "ahead of" if ahead_s > 0 else "behind"
    return f"the clock of {whose} is {abs(ahead_s):.0f} s {way} the database's"
