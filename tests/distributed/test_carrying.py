"""What waits over a day is carried into the present slice: its browse start moves on, old partitions go, nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Filter, Settlement
from mailismus.queue.providers.distributed.browse import carrying
from mailismus.queue.providers.distributed.browse.carrying import LOOK_S, Carrying
from mailismus.queue.providers.distributed.browse.partition import LivingShare
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.format.tables import (
    BROWSE_START,
    CONTENT_START,
    DEAD,
    DELETED,
    DUE,
    ENQUEUED,
    queue_of,
)
from mailismus.queue.providers.distributed.settle.settling import ShareSettling
from mailismus.queue.providers.distributed.view.change import reading_view
from tests.contracts.bench import CONTENT, LATER_REPLY, Bench, addresses
from tests.distributed.harness import VIEW, ModelHarness
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Servers
from tests.distributed.test_queue import rows

HOUR, DAY = 3600, 86_400
FOR_EVER = float(1 << 37)
days_of_waiting = pytest.mark.parametrize("days", [5, pytest.param(40, marks=pytest.mark.exhaustive)])


@pytest.fixture
def harness() -> Iterator[ModelHarness]:
    harness = ModelHarness()
    yield harness
    harness.close()


def pass_days(harness: ModelHarness, days: int) -> None:
    """So much time passes at a server that runs: it stands still for most of each day, to be quick."""
    for _ in range(days):
        harness.advance(DAY - 130)
        harness.advance(130)


def starts(harness: ModelHarness) -> dict[Area, float]:
    return {Area(str(row["queue_name"])): float(str(row["browse_start"])) for row in rows(harness, BROWSE_START)}


def put_in_all_areas(bench: Bench, days: int) -> dict[SpoolId, list[tuple[int, Area, float, int]]]:
    """Messages that wait: deferred for so many days, for a day and a half, held for ever, kept deleted."""
    far, half = bench.now() + days * DAY, bench.now() + DAY * 3 / 2
    for due_at, area in ((far, Area.DEFERRED), (half, Area.DEFERRED), (FOR_EVER, Area.HELD), (far, Area.DELETED)):
        bench.put(addresses(3))
        taken = bench.take_ids()
        bench.commit((), [Settlement(one, area, due_at, 2, LATER_REPLY, b"mx[192.0.2.9]:25") for one in taken])
    return as_listed(bench)


def as_listed(bench: Bench) -> dict[SpoolId, list[tuple[int, Area, float, int]]]:
    found: dict[SpoolId, list[tuple[int, Area, float, int]]] = {}
    for message, entry in bench.search():
        found.setdefault(message.spool_id, []).append((entry.number, entry.area, entry.due_at, entry.attempts))
    return {spool_id: sorted(entries, key=lambda one: one[0]) for spool_id, entries in found.items()}


@days_of_waiting
def test_days_later_all_is_there_and_what_is_old_is_removed(harness: ModelHarness, days: int) -> None:
    bench = Bench(harness, harness.make())
    before = put_in_all_areas(bench, days + 20)
    begun = bench.now()
    pass_days(harness, days)
    assert as_listed(bench) == before
    assert all(bench.read(spool_id) == CONTENT for spool_id in before)
    assert {entry.reply for _, entry in bench.search()} == {LATER_REPLY}
    oldest = bench.now() - 2 * DAY
    assert all(start > oldest for start in starts(harness).values())
    for table in (ENQUEUED, DELETED):
        assert all(float(str(row["slice_start"])) > oldest - DAY for row in rows(harness, table))
    assert all(float(str(row["content_start"])) > oldest - DAY for row in rows(harness, CONTENT_START))
    due = [row for row in rows(harness, DUE) if row["due_at"] == begun + (days + 20) * DAY]
    assert len(due) <= 2 * 2, "a share has a row where it is, not where it was"
    assert bench.entry_count() == 12


@days_of_waiting
def test_what_was_due_all_the_time_may_be_taken_once(harness: ModelHarness, days: int) -> None:
    bench = Bench(harness, harness.make())
    put_in_all_areas(bench, days + 1)
    pass_days(harness, 3)
    taken = bench.take_ids(Area.DEFERRED)
    assert len(taken) == 3
    bench.remove(taken)
    pass_days(harness, days - 1)
    again = bench.take_ids(Area.DEFERRED)
    assert len(again) == 3
    assert set(again).isdisjoint(taken)


@days_of_waiting
def test_a_site_that_stood_still_for_days_has_all_of_it(harness: ModelHarness, days: int) -> None:
    bench = Bench(harness, harness.make())
    before = put_in_all_areas(bench, days + 20)
    waiting = bench.put()
    harness.crash_only()
    harness.clock.advance(days * DAY)
    bench = Bench(harness, harness.make())
    after = as_listed(bench)
    assert after.pop(waiting)
    assert after == before
    pass_days(harness, 2)
    after = as_listed(bench)
    assert after.pop(waiting)
    assert after == before
    assert {entry.spool_id for entry in bench.take_ids()} == {waiting}


def test_what_is_out_stays_and_what_is_beside_it_moves(harness: ModelHarness) -> None:
    bench = Bench(harness, harness.make())
    spool_id = bench.put(addresses(2))
    first, second = bench.take_ids()
    harness.advance(60)  # claimed by now
    bench.queue.give_back([second], bench.now())
    queue: Any = bench.queue
    share = queue.parts.hand.index.messages[spool_id].shares[1].whole
    assert harness.wait(Deferred.fromCoroutine(queue.parts.settling.carry(share, [1, 2]))) == 1
    assert len([row for row in rows(harness, ENQUEUED) if row["number"]]) == 3
    assert bench.remove([first]) == []
    harness.advance(1)
    assert bench.take_ids() == [second]
    assert bench.remove([second]) == [spool_id]


def test_a_turn_moves_a_bounded_number(harness: ModelHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying, "MOST", 5)
    bench = Bench(harness, harness.make())
    for _ in range(10):
        bench.put(addresses(2), placements=None)
    bench.defer(bench.take_ids(), bench.now() + 10 * DAY)
    harness.advance(27 * HOUR)
    harness.advance(30)

    def moved() -> int:
        return len({row["enqueue_id"] for row in rows(harness, ENQUEUED) if _is_new(row["slice_start"], bench.now())})

    harness.advance(60)
    assert 0 < moved() <= 3
    harness.advance(240)
    assert moved() == 10


def _is_new(start: object, now: float) -> bool:
    return float(str(start)) > now - 2 * HOUR


@pytest.mark.parametrize("fate", list(Fate))
def test_a_share_is_carried_once_whatever_becomes_of_a_write(harness: ModelHarness, fate: Fate) -> None:
    bench = Bench(harness, harness.make())
    spool_id = bench.put(addresses(2))
    bench.defer(bench.take_ids(), bench.now() + 2 * DAY)
    harness.advance(27 * HOUR)
    harness.advance(20)
    assert harness.server is not None
    harness.server.rows.fates.plan(*[fate] * 3, call="write")
    for _ in range(10):
        harness.advance(60)
    bench = Bench(harness, harness.crash(bench.queue))
    found: list[Entry] = [entry for _, entry in bench.search()]
    assert sorted(entry.number for entry in found) == [1, 2]
    harness.advance(2 * DAY)
    harness.advance(60)
    taken = bench.take_ids(Area.DEFERRED)
    assert len(taken) == 2
    assert bench.remove(taken) == [spool_id]


def test_what_another_server_has_stays() -> None:
    servers = Servers()
    one = servers.start("one")
    spool_id = one.put()
    taken = one.take_ids()
    servers.advance(60)
    two = servers.start("two")
    share = one.shared.parts.hand.index.messages[spool_id].shares[1].whole
    assert servers.wait_for(two.shared.parts.settling.carry(share, [1])) == 0
    assert one.may_try(taken[0])
    assert one.remove(taken) == [spool_id]


def test_a_due_row_that_outlives_its_share_is_no_dead_letter(harness: ModelHarness) -> None:
    bench = Bench(harness, harness.make())
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 4 * DAY)
    bench.wait(bench.queue.visit_all(Filter(), bench.now()))
    harness.advance(1)
    bench.remove(bench.take_ids(Area.DEFERRED))
    pass_days(harness, 3)
    assert rows(harness, ENQUEUED) == []
    pass_days(harness, 2)
    assert rows(harness, DUE) == []
    assert not harness.world.broker.queues[DEAD].waiting
    assert not harness.world.broker.queues[queue_of("deferred")].waiting


def test_without_a_lease_that_is_sure_a_turn_is_none() -> None:
    clock, moved, is_sure = Clock(), list[float](), False

    class Empty:
        """Starts of a queue in which nothing lives."""

        async def living(self, area: Area, until: float) -> AsyncIterator[LivingShare]:
            nothing: list[LivingShare] = []
            for one in nothing:
                yield one

    async def move_starts() -> None:
        moved.append(clock.seconds())

    starts, settling = cast(Starts, Empty()), cast(ShareSettling, None)
    Carrying(starts, settling, lambda: reading_view([VIEW]), lambda: is_sure, clock.seconds, move_starts, clock).start()
    for _ in range(5):
        clock.advance(LOOK_S)
    assert moved == []
    is_sure = True
    clock.advance(LOOK_S)
    assert moved == [6 * LOOK_S], "it has not rested"
