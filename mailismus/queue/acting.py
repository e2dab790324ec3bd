"""What acts of administrators may do to the queue (`queue.acts`): claim, settle, wait for what is out.

*Rules*: a settlement counts when it is durable. Failures of a message with several recipients are told to its round, as
those of deliveries are, so that they come with one report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId, SpoolId, spool_name
from mailismus.observe.maillog import MailLog
from mailismus.queue.arriving import Arrivals
from mailismus.queue.bounces import Bounces
from mailismus.queue.clock.dating import Dating
from mailismus.queue.coming_back import AwaitingAct, ComingBack
from mailismus.queue.commits import commit_deferred
from mailismus.queue.interface import Area, Filter, IQueue, Message, Page, Settlement
from mailismus.queue.listeners import Listeners


class Acting:
    """The queue, for acts. `now`: UTC seconds. `awaited`: entries that acts wait for. `arrivals`: rules for mail to come."""

    def __init__(
        self,
        provider: IQueue,
        bounces: Bounces,
        listeners: Listeners,
        dating: Dating,
        mail_log: MailLog,
        now: Callable[[], float],
    ) -> None:
        self._provider, self._bounces, self._listeners = provider, bounces, listeners
        self._dating, self._mail_log, self.now = dating, mail_log, now
        self.awaited = ComingBack()
        self.arrivals = Arrivals(provider)

    def claim(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        """As `IQueue.claim`, the filter by dated messages."""
        return self._provider.claim(self._dating.date_filter(wanted), after, limit)

    def give_back(self, queue_id: QueueId, due_at: float) -> None:
        """Give back a claimed entry, to wait until its time."""
        self._provider.give_back([queue_id], due_at)

    def take(self, area: Area, limit: int) -> Deferred[list[Message]]:
        """Take entries of acts whose time has come."""
        return self._provider.take(area, limit, self.now(), None)

    def is_due(self, area: Area) -> bool:
        """Whether entries of acts in this area may be due."""
        due_at = self._provider.next_due(area)
        return due_at is not None and due_at <= self.now()

    def expect(self, queue_ids: Collection[QueueId], act: AwaitingAct) -> None:
        """Let the act have these entries, which are out, when they come back."""
        self.awaited.expect(queue_ids, act)

    async def settle(self, messages: Sequence[Message], settlements: Sequence[Settlement], lines: Sequence[bytes]) -> None:
        """Settle claimed or taken entries of these messages; return when that is durable and logged, by these lines."""
        bounced = self._bounced(messages, settlements)
        for spool_id, count in bounced.items():
            self._bounces.bounced(spool_id, count)
        try:
            gone = await commit_deferred(self._provider, (), settlements)
        finally:
            for spool_id, count in bounced.items():
                self._bounces.sure(spool_id, count)
        self._mail_log.write_lines([*lines, *(spool_name(spool_id) + b": removed" for spool_id in gone)])
        dues = [one.due_at for one in settlements if one.area is Area.DEFERRED]
        if dues:
            self._listeners.wake(Area.DEFERRED, min(dues), self.now())

    def log(self, lines: Sequence[bytes]) -> None:
        """Log entries that came back, or arrived, and that an act has now."""
        self._mail_log.write_lines(lines)

    def _bounced(self, messages: Sequence[Message], settlements: Sequence[Settlement]) -> dict[SpoolId, int]:
        """Return how many entries of messages with several recipients these settlements make bounces of."""
        several = {message.spool_id for message in messages if message.recipient_count > 1}
        counts: dict[SpoolId, int] = {}
        for one in settlements:
            if one.area is Area.BOUNCES and one.queue_id.spool_id in several:
                counts[one.queue_id.spool_id] = counts.get(one.queue_id.spool_id, 0) + 1
        return counts
