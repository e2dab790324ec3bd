"""Reads slots of due rows, publishes shares at their time, and removes slots that have passed.

*Rules*: each server publishes what it wrote; what others wrote once their leases are void. Who began since the leases were
looked at is taken to run. A slot is removed when all of it was published, durably, and `LATE_S` are over, by the clock of
this server or the database's, whichever is behind: a row that was begun to be written in time is there by then. Until then a
slot is read again each minute. Of rows whose writer has a lease another server does not know whether they were published: if
it is the one that removes their slot, it publishes them before, once more. What was given back by a server that is gone is
published at once; a bounce of one that was started anew a moment ago `REPLAYED_S` later: a report of its may be on its way
into the database, and would be the first of two.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.due.schedule import AreaSchedule
from mailismus.queue.providers.distributed.format.due import (
    SHARD,
    SLOT_S,
    DueKind,
    DueShare,
    due_share_of,
    slot_key,
    slot_of,
)
from mailismus.queue.providers.distributed.format.tables import DUE, DUE_START, queue_of
from mailismus.queue.providers.distributed.identity.clock import surely_now
from mailismus.queue.providers.distributed.identity.lease import OtherLeases, ServerLease
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.providers.distributed.stores.rows import Erase, Put
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.stores.together import together

AT_A_TIME = 64
"""Slots that are read, and shares that are published, at once."""
AHEAD_S = 3600.0
"""Of which a start reads the slots."""
FAR_S = 86_400.0
"""How far ahead of the database's clock slots are read: a clock that is wrong by years has no server read millions."""
LATE_S = 300.0
REPLAYED_S = 20.0
"""Until the database has carried out what a dead client has sent: it looks for batches that it did not finish each 10 s."""
PAUSE_S = 1.0
PAGE = 1000


class Firing:
    """The due rows of one server. `now`: UTC seconds."""

    _log = Logger()

    def __init__(self, stores: Stores, reactor: IReactorTime, now: Callable[[], float], lease: ServerLease) -> None:
        self._stores, self._reactor, self._now, self._lease = stores, reactor, now, lease
        self._others = OtherLeases(frozenset(), frozenset(), 0)
        self._areas: dict[Area, AreaSchedule] = {}
        self._timer: IDelayedCall | None = None
        self._is_publishing = self._is_upkeeping = False
        self._is_closed = False

    async def start(self) -> None:
        """Learn what waits. Raises `NotDone`."""
        now, sure = self._now(), await surely_now(self._stores.rows, self._now)
        self._others = await self._lease.look()
        schedules = await together(self._start_area(area, now, sure) for area in Area)
        self._areas.update(zip(Area, schedules, strict=True))
        self._set_timer()
        self._reactor.callLater(SLOT_S, self._upkeep)

    async def _start_area(self, area: Area, now: float, sure: float) -> AreaSchedule:
        schedule = AreaSchedule(await self._first_slot(area, sure))
        await self._read(area, schedule, schedule.slots_to_read(min(now, sure + FAR_S)))
        ahead = [schedule.read_to + step * SLOT_S for step in range(int((AHEAD_S - SLOT_S) // SLOT_S))]
        await self._look_ahead(area, schedule, ahead)
        return schedule

    async def _first_slot(self, area: Area, now: float) -> float:
        """The first slot that may have rows; it is written down before there are any."""
        row = await self._stores.rows.row(DUE_START, (area.value, SHARD))
        start = row["due_slot"] if row is not None else None
        if isinstance(start, int | float):
            return float(start)
        slot = slot_of(now)
        await self._stores.rows.write([Put(DUE_START, (area.value, SHARD), {"due_slot": slot}, slot)])
        return slot

    def close(self) -> None:
        """Publish nothing more."""
        self._is_closed = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def add(self, dues: Sequence[DueShare]) -> None:
        """These rows are there."""
        for due in dues:
            self._areas[Area(due.name.place.queue_name)].add(due)
        self._set_timer()

    def forget(self, due: DueShare) -> None:
        """This row need not be published any more."""
        self._areas[Area(due.name.place.queue_name)].forget(due)

    def adopt(self, others: OtherLeases) -> None:
        """Publish what was written by servers that have no lease any more."""
        has_died = not others.live.issuperset(self._others.live)
        self._others = others
        if has_died:
            for schedule in self._areas.values():
                schedule.adopt(others.runs, 0.0, self._early_at)
            self._set_timer()
            self._read_again()  # there may be rows that were written since

    def _is_others(self, due: DueShare) -> bool:
        """Whether another server wrote a row that runs, and publishes it."""
        return self._others.runs(due.writer)

    def _is_early(self, due: DueShare) -> bool:
        """Whether it was given back by a server that is gone."""
        return due.kind is DueKind.GIVEN_BACK and not self._is_others(due) and due.writer != self._lease.epoch

    def _early_at(self, due: DueShare) -> float:
        """When what was given back by a server that is gone is published."""
        is_report_near = due.name.place.queue_name == Area.BOUNCES.value and due.writer in self._others.ended
        return min(due.due_at, self._now() + REPLAYED_S) if is_report_near else 0.0

    def _learn(self, schedule: AreaSchedule, due: DueShare) -> None:
        early_at = self._early_at(due) if self._is_early(due) else None
        schedule.add(due, is_ours=not self._is_others(due), early_at=early_at)

    def next_due(self, area: Area) -> float | None:
        """As `IQueue.next_due`, of what waits in rows."""
        schedule = self._areas.get(area)
        return None if schedule is None else schedule.next_due()

    async def waiting(self, area: Area) -> list[DueShare]:
        """All rows that are known, near or far. Raises `NotDone`."""
        found = []
        for slot in self._areas[area].known_slots():
            found += await self._rows_of(area, slot)
        return found

    def _set_timer(self) -> None:
        if self._is_closed:
            return
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        times = [at for schedule in self._areas.values() if (at := schedule.next_near()) is not None]
        if times and not self._is_publishing:
            self._timer = self._reactor.callLater(max(0.0, min(times) - self._now()), self._fire)

    def _fire(self) -> None:
        if self._is_publishing or self._is_closed:
            return
        self._is_publishing = True
        Deferred.fromCoroutine(self._publish_all()).addErrback(self._failed).addBoth(self._fired)

    def _fired(self, pause_s: object) -> None:
        self._is_publishing = False
        if isinstance(pause_s, float) and not self._is_closed:
            self._timer = self._reactor.callLater(pause_s, self._fire)
        else:
            self._set_timer()

    def _failed(self, failure: Failure) -> float:
        self._log.failure("what is due can't be published", failure)
        return PAUSE_S

    async def _publish_all(self) -> float | None:
        """Publish what is due. Return after how long it is to be tried again, where something could not be published."""
        trouble = False
        for schedule in self._areas.values():
            due = schedule.pop_due(self._now())
            for at in range(0, len(due), AT_A_TIME):
                some = due[at : at + AT_A_TIME]
                for one, is_done in zip(some, await together(self._publish(one) for one in some), strict=True):
                    if is_done:
                        schedule.published(one)
                    else:
                        schedule.again(one, self._now())
                        trouble = True
        return PAUSE_S if trouble else None

    def _publish(self, due: DueShare) -> Deferred[bool]:
        queue = queue_of(due.name.place.queue_name)
        published = self._stores.broker.publish(queue, due.trigger)
        return published.addCallbacks(lambda _: True, self._not_published)

    @staticmethod
    def _not_published(failure: Failure) -> bool:
        if not isinstance(failure.value, StoreFailure):
            failure.raiseException()
        return False

    def _upkeep(self) -> None:
        if self._is_closed:
            return
        self._reactor.callLater(SLOT_S, self._upkeep)
        self._read_again()

    def _read_again(self) -> None:
        if not self._is_upkeeping:
            self._is_upkeeping = True
            Deferred.fromCoroutine(self._keep_up()).addErrback(self._upkeep_failed).addBoth(self._kept_up)

    def _kept_up(self, _: object) -> None:
        self._is_upkeeping = False

    def _upkeep_failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, StoreFailure):
            self._log.failure("the slots of what is due can't be kept up", failure)

    async def _keep_up(self) -> None:
        now, sure = self._now(), await surely_now(self._stores.rows, self._now)
        before = slot_of(sure - LATE_S)
        for area, schedule in self._areas.items():
            schedule.removed(await self._first_slot(area, sure))
            for slot in schedule.slots_read():
                for due in await self._rows_of(area, slot):
                    self._learn(schedule, due)
            await self._read(area, schedule, schedule.slots_to_read(min(now, sure + FAR_S)))
            schedule.adopt(self._others.runs, before, self._early_at)
            start, passed = schedule.passed(before)
            if start > schedule.start:
                for slot in passed:
                    await self._stores.rows.write([Erase(DUE, slot_key(area.value, slot), slot + 2 * SLOT_S)])
                await self._stores.rows.write([Put(DUE_START, (area.value, SHARD), {"due_slot": start}, start)])
                schedule.removed(start)
        self._set_timer()

    async def _read(self, area: Area, schedule: AreaSchedule, slots: Sequence[float]) -> None:
        """Learn the rows of slots that have come near."""
        for at in range(0, len(slots), AT_A_TIME):
            some = slots[at : at + AT_A_TIME]
            before = schedule.set_read_to(some[-1] + SLOT_S)  # first: a row may be written meanwhile
            try:
                found = await together(self._rows_of(area, slot) for slot in some)
            except StoreFailure:
                schedule.set_read_to(before)
                raise
            for due in itertools.chain.from_iterable(found):
                self._learn(schedule, due)

    async def _look_ahead(self, area: Area, schedule: AreaSchedule, slots: Sequence[float]) -> None:
        """Learn which of these slots have rows, and publish what was given back."""
        for at in range(0, len(slots), AT_A_TIME):
            some = slots[at : at + AT_A_TIME]
            found = await together(self._rows_of(area, slot) for slot in some)
            for slot, rows in zip(some, found, strict=True):
                if rows:
                    schedule.note_slot(slot)
                for due in rows:
                    if self._is_early(due):
                        schedule.add_early(due, self._early_at(due))

    async def _rows_of(self, area: Area, slot: float) -> list[DueShare]:
        found: list[DueShare] = []
        after = None
        while True:
            rows = await self._stores.rows.rows(DUE, slot_key(area.value, slot), after, PAGE)
            found += [due for row in rows if (due := due_share_of(row)) is not None]
            if len(rows) < PAGE:
                return found
            after = (rows[-1]["due_at"], rows[-1]["enqueue_id"])
