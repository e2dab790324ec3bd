"""The reporting task at work in a world: as in a server, over a manager; what it sends, and what its log tells, is noted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from twisted.internet.defer import Deferred

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.interface import Area, Entry, Message, Settlement
from mailismus.queue.manager import QueueManager
from mailismus.report.task import ReportTask
from tests.durability.crash.knowledge import Acknowledged, Asked, Sent, Settled
from tests.durability.crash.world import World
from tests.report.harness import report_settings

LINK = b": sender non-delivery notification: "
"""In the log, before the spool id of a report that is in the queue."""


class _Draft:
    """`IDraft` that remembers what is written."""

    def __init__(self, whole: IDraft) -> None:
        self.whole = whole
        self.content = b""

    @property
    def spool_id(self) -> SpoolId:
        return self.whole.spool_id

    @property
    def stored_bytes(self) -> int:
        return self.whole.stored_bytes

    def write(self, data: bytes) -> Deferred[None] | None:
        self.content += data
        return self.whole.write(data)

    def abandon(self) -> None:
        self.whole.abandon()


class Reporting:
    """`ReportQueue` and `MailLog` of a task, until all bounces there are have been reported."""

    def __init__(self, world: World, attachmsg: int) -> None:
        self._world = world
        self._manager = QueueManager(world.server.queue, world.settings.retry, world.clock, world.clock.seconds, self)
        self._bounces = {queue_id for queue_id, seen in world.live().items() if seen.area is Area.BOUNCES}
        self._reports: dict[SpoolId, list[QueueId]] = {}
        numbers = itertools.count(1)
        self._task = ReportTask(
            report_settings(attachmsg=attachmsg, interval_error_s=0.2),
            b"mx.example",
            self,
            self,
            world.clock,
            world.clock.seconds,
            lambda size: next(numbers).to_bytes(size, "big"),
        )
        self._task.start()

    @property
    def is_done(self) -> bool:
        """Nothing is left to report."""
        return not self._bounces

    def finish(self) -> None:
        """Until then, and stop."""
        for _ in range(1000):
            if self.is_done:
                break
            self._world.clock.advance(0.01)
        assert self.is_done, "never reported"
        self._task.stop(self._world.clock.seconds())
        self._world.settle_down()

    # MailLog

    def write(self, line: bytes) -> None:
        """What the log tells is so."""
        _, link, number = line.partition(LINK)
        if link:
            spool_id = SpoolId(int(number, 16))
            self._world.disk.mark(Acknowledged(spool_id))
            self._have_ended(self._reports[spool_id])

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """As above."""
        for line in lines:
            self.write(line)

    def _have_ended(self, queue_ids: Sequence[QueueId]) -> None:
        for queue_id in queue_ids:
            self._world.disk.mark(Settled(Settlement(queue_id, None)))
            self._bounces.discard(queue_id)

    # ReportQueue

    def take(self, area: Area, limit: int) -> Deferred[list[Message]]:
        return self._manager.take(area, limit)

    def ready(self, area: Area) -> Deferred[None]:
        return self._manager.ready(area)

    def next_due(self, area: Area) -> float | None:
        return self._manager.next_due(area)

    def give_back(self, message: Message, entries: Sequence[Entry], delay_s: float) -> None:
        self._manager.give_back(message, entries, delay_s)

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return self._manager.read(spool_id)

    def may_try(self, spool_id: SpoolId) -> bool:
        return self._manager.may_try(spool_id)

    def draft(self) -> IDraft:
        return _Draft(self._manager.draft())

    def report(self, draft: IDraft, envelope: Envelope, message: Message) -> Deferred[None]:
        assert isinstance(draft, _Draft)
        queue_ids = message.queue_ids()
        self._reports[draft.spool_id] = queue_ids
        self._world.disk.mark(Sent(draft.spool_id, draft.content, 1, tuple(queue_ids)))
        self._ask(queue_ids)
        return self._manager.report(draft.whole, envelope, message)

    def discard(self, message: Message) -> Deferred[None]:
        queue_ids = message.queue_ids()
        self._ask(queue_ids)

        def ended(result: None) -> None:
            self._have_ended(queue_ids)

        return self._manager.discard(message).addCallback(ended)

    def _ask(self, queue_ids: Sequence[QueueId]) -> None:
        for queue_id in queue_ids:
            self._world.disk.mark(Asked(Settlement(queue_id, None)))
