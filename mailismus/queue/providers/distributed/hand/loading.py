"""From triggers to entries: in the order in which they came, as far as there is room.

*Rules*: a message that no Mailismus has written, or that names a share of which nothing is there, goes to the dead queue.
While the database is away triggers wait. What moved and lost against another share is marked removed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from uuid import UUID

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.enqueue.plan import closed_row
from mailismus.queue.providers.distributed.format.marks import name_of, removed_mark
from mailismus.queue.providers.distributed.format.tables import DEAD
from mailismus.queue.providers.distributed.format.trigger import read_trigger
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import Delivered, HeldShare
from mailismus.queue.providers.distributed.hand.reading import Condition, FoundShare, read_share
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.stores.together import together

AT_A_TIME = 64
"""Shares that are read at once."""
PAUSE_S = 1.0
UNDER_WAY_S = 5.0
"""Until a share is looked at again whose origin has no mark yet: the database finishes batches within seconds."""
AREAS = frozenset(area.value for area in Area)


@attrs.define(eq=False)
class _Waiting:
    """A trigger whose share is to be read."""

    held: HeldShare
    numbers: Sequence[int] | None
    body: bytes
    delivered: Delivered


class TriggerLoading:
    """The line of triggers. `now`: UTC seconds."""

    _log = Logger()

    def __init__(self, hand: Hand, stores: Stores, reactor: IReactorTime, now: Callable[[], float]) -> None:
        self._hand, self._stores, self._reactor, self._now = hand, stores, reactor, now
        self._line: deque[_Waiting] = deque()
        self._aside: dict[UUID, list[_Waiting]] = {}
        """Triggers of shares that are hidden."""
        self._is_running = False
        self._is_closed = False

    def close(self) -> None:
        """Read nothing more."""
        self._is_closed = True

    def add(self, body: bytes, delivered: Delivered) -> None:
        """A message has come."""
        trigger = read_trigger(body)
        if trigger is None or trigger.queue_name not in AREAS:
            self._bury(body, delivered, "no trigger of this Mailismus")
            return
        held = self._hand.share(name_of(trigger))
        held.deliveries.append(delivered)
        waiting = _Waiting(held, trigger.numbers, body, delivered)
        if trigger.enqueue_id in self._hand.hidden:
            self._aside.setdefault(trigger.enqueue_id, []).append(waiting)
        else:
            self._line.append(waiting)
            self.go_on()

    def show(self, names: Sequence[UUID]) -> None:
        """These shares are hidden no more."""
        for name in names:
            self._hand.hidden.discard(name)
            self._line.extend(self._aside.pop(name, ()))
        self.go_on()

    def go_on(self) -> None:
        """There may be room."""
        if self._line and not self._is_running and not self._is_closed and self._hand.has_room(self._now()):
            self._is_running = True
            Deferred.fromCoroutine(self._run()).addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        self._is_running = False
        self._log.failure("triggers can't be read", failure)
        self._reactor.callLater(PAUSE_S, self.go_on)

    async def _run(self) -> None:
        while self._line and not self._is_closed and self._hand.has_room(self._now()):
            waiting = self._next()
            for one, found in zip(waiting, await together(self._read(one) for one in waiting), strict=True):
                if found is None:
                    self._again(one, PAUSE_S)
                else:
                    self._found(one, found)
        self._is_running = False

    def _next(self) -> list[_Waiting]:
        """The next ones, without those that will be delivered again."""
        waiting = []
        for one in [self._line.popleft() for _ in range(min(AT_A_TIME, len(self._line)))]:
            if one.delivered.is_lost:
                self._hand.end_use(one.held)
            else:
                waiting.append(one)
        return waiting

    async def _read(self, waiting: _Waiting) -> FoundShare | None:
        """What was found; None: the database is away."""
        try:
            found = await read_share(self._stores.rows, waiting.held.name)
            if found.lost and found.share is not None:
                now = self._now()
                writes = [removed_mark(waiting.held.name, number, now) for number in found.lost]
                await self._stores.rows.write([*writes, *([] if found.left else [closed_row(found.share, now)])])
        except StoreFailure:
            return None
        return found

    def _again(self, waiting: _Waiting, delay_s: float) -> None:
        def append() -> None:
            self._line.append(waiting)
            self.go_on()

        self._reactor.callLater(delay_s, append)

    def _found(self, waiting: _Waiting, found: FoundShare) -> None:
        held, condition = waiting.held, found.condition
        if condition is Condition.UNDER_WAY:
            self._again(waiting, UNDER_WAY_S)
            return
        if condition is Condition.LIVES:
            held.learn(found.share, found.left, is_split=found.is_split)
            if self._hand.is_elsewhere(held, waiting.numbers):
                held.forget()
                self._again(waiting, UNDER_WAY_S)
                return
            self._hand.add(held, waiting.numbers, self._now(), is_due=True)
        elif condition in (Condition.UNKNOWN, Condition.DAMAGED):
            held.drop(waiting.delivered)
            self._bury(waiting.body, waiting.delivered, f"the rows of its share are {condition.value}")
        self._hand.end_use(held)

    def _bury(self, body: bytes, delivered: Delivered, why: str) -> None:
        self._log.error(
            "A message of the broker goes to the queue {queue}: {why}: {body}", queue=DEAD, why=why, body=body[:200]
        )
        self._publish_dead(body, delivered)

    def _publish_dead(self, body: bytes, delivered: Delivered) -> None:
        if not (delivered.is_lost or self._is_closed):
            buried = self._stores.broker.publish(DEAD, body)
            buried.addCallbacks(
                lambda _: delivered.ack(), lambda _: self._reactor.callLater(PAUSE_S, self._publish_dead, body, delivered)
            )
