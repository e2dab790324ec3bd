"""What is given back for long leaves the hand, and waits in a due row: so one throttled host blocks nobody.

*Rule*: when this server is gone such rows are published at once, as far as they are known: what was given back is due as
before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailismus.mail.ids import QueueId
from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.format.due import DueKind, due_row, due_share
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import HeldShare
from mailismus.queue.providers.distributed.hand.owning import Owned, Owning
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.rows import IRows

LONG_S = 5.0
MOST_AWAY = 10_000
"""Entries that have left so, of which this is known: about 2 MB."""


class LongGiveBacks:
    """Entries that were given back. `now`: UTC seconds; `epoch`: of this server's lease."""

    _log = Logger()

    def __init__(
        self, rows: IRows, hand: Hand, firing: Firing, owning: Owning, now: Callable[[], float], epoch: Callable[[], int]
    ) -> None:
        self._rows, self._hand, self._firing, self._owning = rows, hand, firing, owning
        self._now, self._epoch = now, epoch
        self._away: dict[QueueId, float] = {}
        """What has left the hand, those that left last, and until when."""

    def has(self, queue_id: QueueId) -> bool:
        """Whether an entry is in the hand, or waits in a row because this server gave it back."""
        return self._hand.has(queue_id) or self._away.get(queue_id, -math.inf) > self._now()

    def leave(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        """These entries wait in the hand until then. Have them wait in rows, if that is long."""
        if not_before - self._now() <= LONG_S:
            return
        shares: dict[HeldShare, list[QueueId]] = {}
        for queue_id in queue_ids:
            known = self._hand.index.messages.get(queue_id.spool_id)
            if known is not None and queue_id in self._hand.index.given_back:
                shares.setdefault(known.shares[queue_id.number], []).append(queue_id)
        for held, some in shares.items():
            held.begin_use()
            Deferred.fromCoroutine(self._leave(held, some, not_before)).addErrback(
                lambda failure: self._log.failure("what was given back stays in memory", failure)
            )

    async def _leave(self, held: HeldShare, queue_ids: Sequence[QueueId], not_before: float) -> None:
        now = self._now()
        due = due_share(held.name, not_before, now, self._epoch(), DueKind.GIVEN_BACK)
        try:
            if len(held.here) > len(queue_ids) and await self._owning.claim(held) is Owned.NOT:
                self._hand.end_use(held)  # another server has it
                return
            await self._rows.write([due_row(due, now)])
        except StoreFailure:
            self._hand.end_use(held)  # it waits in the hand
            return
        self._firing.add([due])
        index = self._hand.index
        for queue_id in queue_ids:
            known = index.messages.get(queue_id.spool_id)
            still = known is not None and known.shares.get(queue_id.number) is held
            if (
                still
                and known is not None
                and index.given_back.get(queue_id) == not_before
                and not self._hand.is_out(queue_id)
            ):
                self._hand.let_go(known, queue_id.number)
                self._note(queue_id, not_before)
        self._hand.end_use(held)

    def _note(self, queue_id: QueueId, until: float) -> None:
        self._away.pop(queue_id, None)
        self._away[queue_id] = until
        if len(self._away) > MOST_AWAY:
            del self._away[next(iter(self._away))]
