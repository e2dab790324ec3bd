"""From triggers to entries: in the order in which they came, as far as there is room, and as they are this server's.

*Rules*: a message that no Mailismus has written, or that names a share of which nothing is there, goes to the dead queue;
not that of a due row whose share may have been cleaned up.
While the database is away triggers wait. What moved and lost against another share is marked removed. Whatever is claimed is
read behind the claim. New mail that needs no claim waits behind none that does: it has a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.counts.keeping import CountKeeping
from mailismus.queue.providers.distributed.format.ids import made_at
from mailismus.queue.providers.distributed.format.marks import name_of
from mailismus.queue.providers.distributed.format.share import Share
from mailismus.queue.providers.distributed.format.tables import DEAD
from mailismus.queue.providers.distributed.format.trigger import read_trigger
from mailismus.queue.providers.distributed.hand.arrived import ArrivedShares
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import Basis, Delivered, HeldShare
from mailismus.queue.providers.distributed.hand.line import Bring, TriggerLine
from mailismus.queue.providers.distributed.hand.losing import end_lost
from mailismus.queue.providers.distributed.hand.owning import OwnClock, Owned, Owning
from mailismus.queue.providers.distributed.hand.reading import Condition, FoundShare, read_marks, read_new, read_share
from mailismus.queue.providers.distributed.hand.rounds import Beside, OtherBounces
from mailismus.queue.providers.distributed.hand.waiting import Suspects, WaitingTrigger
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.stores import Stores

NEW_AT_A_TIME = 64
"""Shares of new mail that are read at once."""
OTHERS_AT_A_TIME = 32
"""Shares that are claimed, and read, at once: by compare and set, which costs the database several times a read."""
PAUSE_S = 1.0
UNDER_WAY_S = 5.0
"""Until a share is looked at again whose origin has no mark yet: the database finishes batches within seconds."""
OLD_S = 86_400.0
"""A slice that is older may have been removed."""
YOUNG_S = 60.0
"""New mail that is older is looked for in the marks, whatever its head says: a broker that was set back, or another program,
may have published its first trigger once more."""
AREAS = frozenset(area.value for area in Area)


class TriggerLoading:
    """The line of triggers. `comes`: told of a share that is about to come into the hand."""

    _log = Logger()

    def __init__(
        self,
        hand: Hand,
        stores: Stores,
        owning: Owning,
        suspects: Suspects,
        counts: CountKeeping,
        reactor: IReactorTime,
        clock: OwnClock,
        arrived: ArrivedShares,
        comes: Callable[[Share], None],
    ) -> None:
        self._bounces = OtherBounces(stores.rows, hand, owning)
        self._hand, self._stores, self._owning, self._counts = hand, stores, owning, counts
        self._reactor, self._now, self._elapsed = reactor, clock.now, clock.elapsed
        self._arrived, self._comes = arrived, comes
        self._new, self._others = TriggerLine(NEW_AT_A_TIME), TriggerLine(OTHERS_AT_A_TIME)
        self._suspects = suspects
        self._aside: dict[UUID, list[WaitingTrigger]] = {}
        """Triggers of shares that are hidden."""
        self._is_closed = self._is_going_on = False

    def start(self) -> None:
        """Hear what other servers say of what waits."""
        self._suspects.start()

    def close(self) -> None:
        """Read nothing more."""
        self._is_closed = True
        self._suspects.close()

    def add(self, body: bytes, delivered: Delivered) -> None:
        """A message has come."""
        trigger = read_trigger(body)
        if trigger is None or trigger.queue_name not in AREAS:
            self._bury(body, delivered, "no trigger of this Mailismus")
            return
        held = self._hand.share(name_of(trigger))
        held.deliveries.append(delivered)
        is_incoming = trigger.queue_name == Area.INCOMING.value
        waits = is_incoming and (delivered.is_redelivered or trigger.is_suspect)
        is_new = is_incoming and not waits and not trigger.is_from_row and trigger.numbers is None
        waiting = WaitingTrigger(held, trigger.numbers, body, delivered, self._elapsed(), is_new, waits)
        if trigger.enqueue_id in self._hand.hidden:
            self._aside.setdefault(trigger.enqueue_id, []).append(waiting)
        else:
            self._put_in_line(waiting)

    def show(self, names: Sequence[UUID]) -> None:
        """These shares are hidden no more."""
        for name in names:
            self._hand.hidden.discard(name)
            for waiting in self._aside.pop(name, ()):
                self._put_in_line(waiting)

    def go_on(self) -> None:
        """There may be room."""
        if self._is_going_on:
            return  # what ends at once is followed below: thousands may, one within the other
        self._is_going_on = True
        while any(self._begin_next(line) for line in (self._new, self._others)):
            pass
        self._is_going_on = False

    def _begin_next(self, line: TriggerLine) -> bool:
        has_room = not self._is_closed and self._hand.has_room(self._now())
        waiting = line.begin() if has_room else None
        if waiting is None:
            return False
        Deferred.fromCoroutine(self._load(waiting)).addErrback(self._failed).addCallback(self._loaded, line, waiting)
        return True

    def _failed(self, failure: Failure) -> Bring:
        self._log.failure("a trigger can't be read", failure)
        return _nothing

    def _loaded(self, bring: Bring, line: TriggerLine, waiting: WaitingTrigger) -> None:
        for one in line.end(waiting, bring):
            try:
                one()
            except Exception:
                self._failed(Failure())  # type: ignore[no-untyped-call]  # Twisted's; the others come all the same
        self.go_on()

    def _put_in_line(self, waiting: WaitingTrigger) -> None:
        if waiting.waits:
            self._suspects.wait(waiting).addCallback(self._again)
        else:
            self._again(waiting)

    def _again(self, waiting: WaitingTrigger) -> None:
        (self._new if waiting.is_new else self._others).add(waiting)
        self.go_on()

    def _again_in(self, seconds: float, waiting: WaitingTrigger) -> None:
        self._reactor.callLater(seconds, self._again, waiting)

    async def _load(self, waiting: WaitingTrigger) -> Bring:
        """Read what one tells of. Return what brings it into the hand."""
        if waiting.delivered.is_lost:
            return partial(self._lose, waiting.held)
        loaded = await self._look_for(waiting)
        if loaded is None:
            return partial(self._again_in, PAUSE_S, waiting)
        return partial(self._bring, waiting, *loaded)

    def _bring(self, waiting: WaitingTrigger, found: FoundShare, beside: Sequence[Beside]) -> None:
        if waiting.delivered.is_lost and not beside:  # else it is claimed, and has a round to lead
            self._lose(waiting.held)
        else:
            self._found(waiting, found)
        for other in beside:
            self._add_beside(other)

    def _lose(self, held: HeldShare) -> None:
        """Its trigger will be delivered again, to another server maybe."""
        self._hand.end_use(held)
        self._owning.let_go(held)

    async def _look_for(self, waiting: WaitingTrigger) -> tuple[FoundShare, Sequence[Beside]] | None:
        """A share as it was found, and what comes with it; None: the database is away."""
        found = await self._read(waiting)
        if found is None or found.share is None or found.condition is not Condition.LIVES:
            return None if found is None else (found, ())
        return found, await self._bounces.of(found.share, self._now())

    def _add_beside(self, other: Beside) -> None:
        held, found = other.held, other.found
        held.learn(found.share, found.left, is_split=found.is_split)
        if not self._hand.is_elsewhere(held, None):
            self._add(held, None)
        self._hand.end_use(held)

    async def _read(self, waiting: WaitingTrigger) -> FoundShare | None:
        """What was found; None: the database is away."""
        try:
            if not await self._is_ours(waiting):
                return await self._leave(waiting)
            found = await self._read_rows(waiting)
            if found.lost:
                with self._counts.doubting(waiting.held.name):
                    await end_lost(self._stores.rows, found, self._now())
        except StoreFailure:
            return None
        return found

    async def _read_rows(self, waiting: WaitingTrigger) -> FoundShare:
        """What is there of a share that is this server's. Raises `NotDone`."""
        rows, held = self._stores.rows, waiting.held
        share = self._arrived.take(held.name.enqueue_id)
        if not (waiting.is_new and held.basis is Basis.NEW):
            return await read_share(rows, held.name)
        if share is not None:
            return await read_marks(rows, share)
        is_young = abs(self._now() - made_at(held.name.enqueue_id)) < YOUNG_S
        is_first = is_young and not self._arrived.is_own(held.name.enqueue_id)
        return await (read_new if is_first else read_share)(rows, held.name)

    async def _leave(self, waiting: WaitingTrigger) -> FoundShare:
        """Another server has it, or had it until it was over: its claim outlasts that. Raises `NotDone`, `Unanswered`."""
        found = await read_share(self._stores.rows, waiting.held.name)
        if found.condition is Condition.OVER:
            waiting.held.drop(waiting.delivered)
            waiting.delivered.ack()
            return found
        if waiting.numbers is None:
            await self._owning.leave(waiting.held, [waiting.delivered])
        return FoundShare(Condition.ELSEWHERE)

    async def _is_ours(self, waiting: WaitingTrigger) -> bool:
        """Whether a share is this server's by now. Raises `NotDone`."""
        held = waiting.held
        is_bounce = held.name.place.queue_name == Area.BOUNCES.value
        if is_bounce and not held.here and not await self._bounces.leads(held.name):
            return False
        return await self._owning.own(held, waiting.since if waiting.is_new else None) is not Owned.NOT

    def _found(self, waiting: WaitingTrigger, found: FoundShare) -> None:
        held, condition = waiting.held, found.condition
        if condition is Condition.UNDER_WAY or (condition is Condition.ELSEWHERE and waiting.numbers is not None):
            self._again_in(UNDER_WAY_S, waiting)
            return
        if condition is Condition.LIVES:
            held.learn(found.share, found.left, is_split=found.is_split)
            if self._hand.is_elsewhere(held, waiting.numbers):
                held.forget()
                self._again_in(UNDER_WAY_S, waiting)
                return
            self._add(held, waiting.numbers)
        elif condition is Condition.UNKNOWN and self._may_be_cleaned_up(waiting):
            pass  # it was over long before its time
        elif condition in (Condition.UNKNOWN, Condition.DAMAGED):
            held.drop(waiting.delivered)
            self._bury(waiting.body, waiting.delivered, f"the rows of its share are {condition.value}")
        elif condition is Condition.OVER:
            self._hand.end_elsewhere(held)
        self._hand.end_use(held)

    def _add(self, held: HeldShare, numbers: Sequence[int] | None) -> None:
        self._comes(held.whole)
        self._hand.add(held, numbers, self._now(), is_due=True)

    def _may_be_cleaned_up(self, waiting: WaitingTrigger) -> bool:
        """Whether a due row outlived its share: one that was flushed and delivered, say."""
        trigger = read_trigger(waiting.body)
        is_old = waiting.held.name.place.slice_start < self._now() - OLD_S
        return is_old and trigger is not None and trigger.is_from_row

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


def _nothing() -> None:
    """Nothing is to be done with a trigger that can't be read."""
