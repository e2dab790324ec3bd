"""The run of an act: passes over the queue, each slice by slice: claim, settle, count.

*Rules*: a slice is one commit, whole or not at all after a crash. An entry that an act has is marked with it, so that a run
that is begun again finds only what is left. An act concerns what was there when it began. Entries that are out are not
recalled: it waits for them (`queue.coming_back`). Behind each page it rests by how long the page may have held up
deliveries, from its claim until its slice was durable, whichever threads worked for it (`WorkThrottle.worked_s`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.acting import Acting
from mailismus.queue.acts.act import Act, ActKind, ActState
from mailismus.queue.acts.counted import CountedMessages
from mailismus.queue.acts.decide import CONCERNED, has_acted, is_of, settlement_of, undone
from mailismus.queue.acts.lines import acted_line, restored_line
from mailismus.queue.filter import named_message, parse_filter
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Area, Entry, Filter, Message, Page, Settlement
from mailismus.queue.throttle import WorkThrottle

SLICE = 200
"""Entries of a slice, about."""
MOST_PASSES = 4
"""Passes over the queue, at most: what moved while one went on is found by the next."""
LOOKED_FOR = 200
"""Messages that are looked for at a time, at most."""
LOOKS = 2
"""How often an entry is looked for before it is gone: it may have moved while it was looked for."""
LEAST_REST_S = 0.001

Make = Callable[[Message, Entry, float], Settlement]
"""Makes the settlement of an entry; so many bytes more may be kept."""


class RecordRun(Protocol):
    """Makes the counts of a run durable."""

    async def __call__(self, run: ActRun) -> None:
        """Raises `OSError`."""


class Keep:
    """How long and how much of deleted mail is kept: `kept_s` seconds (0: nothing), `most_bytes` (0: no limit)."""

    def __init__(self, kept_s: float, most_bytes: int, used_bytes: Callable[[], int]) -> None:
        self.kept_s, self._most_bytes, self._used_bytes = kept_s, most_bytes, used_bytes

    def room_bytes(self) -> float:
        """Return how many bytes more may be kept."""
        return max(0, self._most_bytes - self._used_bytes()) if self._most_bytes else math.inf


def filter_of(act: Act) -> Filter:
    """Return what the act is for. Raises `FilterError`."""
    order = act.order
    base, concerned, begun_at = parse_filter(order.words, act.begun_at), CONCERNED[order.kind], act.begun_at
    (only,) = concerned if len(concerned) == 1 else (None,)

    def matches(message: Message, entry: Entry) -> bool:
        return (
            entry.area in concerned
            and message.received_at <= begun_at
            and base.matches(message, entry)
            and not has_acted(act, entry)
        )

    return Filter(base.spool_id, base.area or only, matches)


def undo_filter_of(act: Act) -> Filter:
    """Return what undoing the act is for."""
    area = {ActKind.HOLD: Area.HELD, ActKind.HOLD_INCOMING: Area.HELD, ActKind.DELETE: Area.DELETED}.get(act.order.kind)
    return Filter(named_message(act.order.words), area, lambda message, entry: is_of(act, entry))


class ActRun:
    """One act that is done or undone. `act`: as it is now. `gaps`: entries that could not be read, by the last pass over the
    queue. `on_change`: called when an entry came back that it waited for. `is_undone`: whether the act of a number is
    undone."""

    def __init__(
        self,
        act: Act,
        acting: Acting,
        keep: Keep,
        clock: IReactorTime,
        throttle: WorkThrottle,
        on_change: Callable[[ActRun], None],
        is_undone: Callable[[int], bool],
    ) -> None:
        self.act = act
        self.gaps = Gaps()
        self.waiting = 0
        """Entries that are out, and that it waits for."""
        self.is_scanned = False
        """It has gone over the whole queue, or was stopped."""
        self.trouble = ""
        """Why it has ended before its time; empty: it has not."""
        self._acting, self._keep, self._clock, self._throttle, self._on_change = acting, keep, clock, throttle, on_change
        self._is_undone = is_undone
        self._counted = CountedMessages()
        self._is_stopped = False

    def enter(self, state: ActState) -> None:
        """Note that the act is in this state from now on."""
        self.act = attrs.evolve(self.act, state=state)

    def fail(self, trouble: str) -> None:
        """Note why it has ended before its time; the first reason counts."""
        self.trouble = self.trouble or trouble

    def end(self) -> None:
        """Note that it goes over the queue no more."""
        self.is_scanned = True

    def take_counts(self, act: Act) -> None:
        """Take over the counts of the act as it is known elsewhere."""
        self.act = attrs.evolve(self.act, entries=act.entries, messages=act.messages)

    def interrupt(self) -> None:
        """End behind the slice under way."""
        self._is_stopped = True

    @property
    def is_stopped(self) -> bool:
        """Whether it was interrupted."""
        return self._is_stopped

    async def do(self, record: RecordRun) -> None:
        """Do the act, from what is left of it. Raises `StorageError`, `OSError`."""
        wanted = filter_of(self.act)
        for number in range(MOST_PASSES):
            before, self.gaps = self.act.entries, Gaps()
            out = await self._pass(wanted, record, self._settlement, self.gaps)
            if self._is_over() or (self.act.entries == before and (number or not out)):
                break
        await self.look_again(record)

    async def look_again(self, record: RecordRun) -> None:
        """Look for what it waits for, `LOOKED_FOR` messages at most: what was not out, but whose outcome was being written,
        is acted on, or gone. It is waited for meanwhile: it may come back. Raises as `do`."""
        for spool_id, queue_ids in self._acting.awaited.waited_for(self, LOOKED_FOR).items():
            if self._is_stopped:
                return
            begun = self._throttle.begin()
            await self._look_for(spool_id, queue_ids, record)
            await self._rest(self._throttle.worked_s(begun))
        self.waiting = self._acting.awaited.count(self)

    async def _look_for(self, spool_id: SpoolId, queue_ids: Sequence[QueueId], record: RecordRun) -> None:
        """Look for entries of one message. Wait no more for those that are not found."""
        wanted = attrs.evolve(filter_of(self.act), spool_id=spool_id)
        for _ in range(LOOKS):
            out = await self._pass(wanted, record, self._settlement, Gaps())
            if self._is_stopped or out.issuperset(queue_ids):
                return
        self._acting.awaited.leave([one for one in queue_ids if one not in out], self)

    async def undo(self, record: RecordRun) -> None:
        """Restore what is in the act's hands. Raises as `do`."""
        wanted = undo_filter_of(self.act)
        before = -1
        while before != self.act.restored and not self._is_stopped:
            before, self.gaps = self.act.restored, Gaps()
            await self._pass(wanted, record, None, self.gaps)

    def _is_over(self) -> bool:
        limit = self.act.order.limit
        return self._is_stopped or (limit is not None and self.act.entries >= limit)

    async def _pass(self, wanted: Filter, record: RecordRun, make: Make | None, gaps: Gaps) -> set[QueueId]:
        """Go over the queue once. `make` None: restore. Return the entries that were out and are waited for."""
        cursor: object | None = None
        out = set[QueueId]()
        while True:
            begun = self._throttle.begin()
            page = await self._acting.claim(wanted, cursor, SLICE)
            gaps.add(page.gaps)
            if make is not None and self.act.order.limit is None:
                self._wait_for(page)
                out.update(page.out)
            if page.messages:
                await self._slice(page, make)
            worked_s = self._throttle.worked_s(begun)
            if page.messages:
                await record(self)
            cursor = page.cursor
            if cursor is None or (self._is_over() if make is not None else self._is_stopped):
                return out
            await self._rest(worked_s)
            if self._is_stopped:
                return out

    def _wait_for(self, page: Page) -> None:
        """Wait for what is out, and no more for what was claimed."""
        awaited = self._acting.awaited
        awaited.leave([one for message in page.messages for one in message.queue_ids()], self)
        self._acting.expect(page.out, self)
        self.waiting = awaited.count(self)

    async def _rest(self, worked_s: float) -> None:
        """Leave the server to mail behind work that lasted so many seconds."""
        await deferLater(self._clock, LEAST_REST_S)
        while worked_s > 0 and not self._is_stopped:  # in parts: an act that is interrupted ends soon
            await self._throttle.rest(min(worked_s, self._throttle.most_used_s))
            worked_s -= self._throttle.most_used_s

    async def _slice(self, page: Page, make: Make | None) -> None:
        """Settle a page in one commit."""
        settled, change = self._begin_slice(page, make)
        await settled
        self.act = change(self.act)

    def _begin_slice(self, page: Page, make: Make | None) -> tuple[Deferred[None], Callable[[Act], Act]]:
        """Begin the commit of a slice. Return when it is durable, and what the act's counts are then."""
        act, room_bytes = self.act, self._keep.room_bytes()
        limit = act.order.limit if make is not None else None
        settlements: list[Settlement] = []
        lines: list[bytes] = []
        messages = removed = kept_bytes = 0
        for message in page.messages:
            has_some = is_kept = False
            for entry in message.entries:
                if limit is not None and act.entries + len(settlements) >= limit:
                    self._acting.give_back(QueueId(message.spool_id, entry.number), entry.due_at)
                    continue
                one = self._undone(message, entry) if make is None else make(message, entry, room_bytes - kept_bytes)
                settlements.append(one)
                has_some = True
                is_kept = is_kept or one.area is Area.DELETED
                removed += one.area is None
                lines.append((restored_line if make is None else acted_line)(act, message, entry))
            if has_some and self._counted.is_new(message.spool_id):
                messages += 1
                kept_bytes += message.stored_bytes if is_kept else 0
        if not settlements:
            return succeed(None), lambda act: act
        settled = Deferred.fromCoroutine(self._acting.settle(page.messages, settlements, lines))
        if make is None:
            return settled, lambda act: attrs.evolve(act, restored=act.restored + len(settlements))
        return settled, lambda act: attrs.evolve(
            act,
            entries=act.entries + len(settlements),
            messages=act.messages + messages,
            removed=act.removed + removed,
            kept_bytes=act.kept_bytes + kept_bytes,
        )

    def _settlement(self, message: Message, entry: Entry, room_bytes: float) -> Settlement:
        kept_s = self._keep.kept_s if message.stored_bytes <= room_bytes else 0.0
        return settlement_of(self.act, message, entry, self._acting.now(), kept_s)

    def _undone(self, message: Message, entry: Entry) -> Settlement:
        return undone(self.act, message, entry, self._acting.now(), self._is_undone)

    # `AwaitingAct`

    def settlement_of(self, message: Message, entry: Entry) -> Settlement | None:
        if entry.area not in CONCERNED[self.act.order.kind]:
            return None
        return self._settlement(message, entry, self._keep.room_bytes())

    def came_back(self, message: Message, entry: Entry, settlement: Settlement | None) -> None:
        self.waiting = self._acting.awaited.count(self)
        if settlement is not None:
            self._acting.log([acted_line(self.act, message, entry)])
            is_new = self._counted.is_new(message.spool_id)
            is_kept = is_new and settlement.area is Area.DELETED
            self.act = attrs.evolve(
                self.act,
                entries=self.act.entries + 1,
                messages=self.act.messages + is_new,
                removed=self.act.removed + (settlement.area is None),
                kept_bytes=self.act.kept_bytes + (message.stored_bytes if is_kept else 0),
            )
        self._on_change(self)
