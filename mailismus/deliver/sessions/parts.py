"""Follows the parts of limits that hold over all servers of a shared queue.

a part has grown    -> what waits is placed
a part has shrunk   -> idle connections beyond it end; others end with their transactions
more servers        -> jobs that have not begun come again, with as many recipients as parts allow now
"""

from __future__ import annotations

from collections import Counter

from twisted.internet.interfaces import IReactorTime

from mailismus.deliver.giving_back import GivingBack
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.placing import ScheduleOwner
from mailismus.deliver.schedule.schedule import Schedule
from mailismus.queue.limits import ILimits


class PartsFollowing:
    """What follows from other parts. `owner`: serves the schedule."""

    def __init__(
        self, limits: ILimits, schedule: Schedule, giving_back: GivingBack, owner: ScheduleOwner, clock: IReactorTime
    ) -> None:
        self._limits, self._schedule, self._giving_back, self._owner = limits, schedule, giving_back, owner
        self._clock = clock
        self._servers = limits.servers
        self._is_due = False

    def start(self) -> None:
        """Begin."""
        self._limits.listen(self._on_change)

    def _on_change(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._clock.callLater(0, self._follow)  # in a turn of its own: idle sessions end

    def _follow(self) -> None:
        self._is_due = False
        before, self._servers = self._servers, self._limits.servers
        if self._servers > before and self._schedule.limits_of.has_rates:
            self._giving_back.give_back_all()
        ended: Counter[Endpoint] = Counter()
        for connection in list(self._schedule.pool.idle):
            endpoint, carrier = connection.host.endpoint, connection.carrier
            parts = endpoint.parts
            if parts is not None and carrier is not None and parts.surplus(endpoint.connections) > ended[endpoint]:
                ended[endpoint] += 1
                carrier.quit()
        self._owner.want_service()
