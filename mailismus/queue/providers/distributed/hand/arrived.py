"""New mail that came in here a moment ago: its rows need not be read. Pure.

Rows of a share never change, and no clean-up removes them within minutes: so what was written a moment ago is what a read
would find. Its marks are read all the same: an administrator elsewhere may have removed it meanwhile.

*Rules*: a share is given once, and not behind `FRESH_S`: of a server that stood still for longer others may have all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from uuid import UUID

from mailismus.queue.providers.distributed.format.share import Share

FRESH_S = 60.0
MOST_ENTRIES = 20_000
"""Of all shares together: those that came first make room."""


class ArrivedShares:
    """Shares that were put in here. `elapsed`: seconds that never jump, and count the time that a machine sleeps; `is_own`:
    whether an id was made here."""

    def __init__(self, elapsed: Callable[[], float], is_own: Callable[[UUID], bool]) -> None:
        self._elapsed, self.is_own = elapsed, is_own
        self._shares: OrderedDict[UUID, tuple[float, Share]] = OrderedDict()
        self._entries = 0

    def keep(self, shares: Iterable[Share]) -> None:
        """These are durable."""
        now = self._elapsed()
        for share in shares:
            self._shares[share.name.enqueue_id] = (now, share)
            self._entries += len(share.message.entries)
        while self._shares:
            since, share = next(iter(self._shares.values()))
            if self._entries <= MOST_ENTRIES and now < since + FRESH_S:
                break
            self.take(share.name.enqueue_id)

    def take(self, name: UUID) -> Share | None:
        """A share that came in a moment ago. It is not kept any more."""
        since, share = self._shares.pop(name, (0.0, None))
        if share is None:
            return None
        self._entries -= len(share.message.entries)
        return share if self._elapsed() < since + FRESH_S else None
