"""What acts keep ends by time: a hold for a time is released, what was deleted is removed for good.

*Rules*: the queue's own due times say when, so that a crash forgets nothing. Entries whose release or removal was under way
in a crash are found due again.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.errors import StorageError
from mailismus.mail.ids import QueueId, spool_name
from mailismus.queue.acting import Acting
from mailismus.queue.acts.decide import restored
from mailismus.queue.addressed import addressed
from mailismus.queue.interface import Area, Message, Settlement

LOOK_S = 1.0
"""Seconds between two looks at the due times."""
SLICE = 500
"""Entries that are settled at once, at most."""


class Keeping:
    """The ends of holds and of what is kept, of one queue."""

    _log = Logger()

    def __init__(self, acting: Acting, clock: IReactorTime) -> None:
        self._acting, self._clock = acting, clock
        self._timer: IDelayedCall | None = None
        self._looking: Deferred[None] | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Begin to look."""
        self._timer = self._clock.callLater(LOOK_S, self._look)

    def stop(self) -> Deferred[None] | None:
        """Look no more. Fires when the slice under way has ended; None: there is none."""
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        return self._looking

    def _look(self) -> None:
        looking = self._looking = Deferred.fromCoroutine(self._end_due())
        looking.addErrback(lambda failure: self._log.failure("what is kept can't be ended by time", failure))
        looking.addCallback(self._looked)

    def _looked(self, _: None) -> None:
        self._looking = None
        if not self._is_stopped:
            self.start()

    async def _end_due(self) -> None:
        for area in (Area.HELD, Area.DELETED):
            while not self._is_stopped and self._acting.is_due(area):
                try:
                    messages = await self._acting.take(area, SLICE)
                except StorageError:
                    return
                if not messages:
                    break
                await self._end(area, messages)

    async def _end(self, area: Area, messages: list[Message]) -> None:
        now = self._acting.now()
        settlements: list[Settlement] = []
        lines: list[bytes] = []
        for message in messages:
            for entry in message.entries:
                queue_id = QueueId(message.spool_id, entry.number)
                settlements.append(restored(message, entry, now) if area is Area.HELD else Settlement(queue_id, None))
                what = b"released: the time of its hold is over" if area is Area.HELD else b"removed for good"
                lines.append(b"%b: to=<%b>, status=%b" % (spool_name(message.spool_id), addressed(entry), what))
        await self._acting.settle(messages, settlements, lines)
