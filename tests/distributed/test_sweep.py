"""Contents and rows of the index that nothing names are found and removed; what a commit may still name never is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.content.whole import WholeBody
from mailismus.queue.providers.distributed.format.tables import ENQUEUED, MAILS
from mailismus.queue.providers.distributed.sweep import sweeping
from tests.contracts.bench import CONTENT, Bench, addresses
from tests.distributed.harness import ModelHarness
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Servers
from tests.distributed.test_queue import rows

DAY = 86_400


@pytest.fixture
def harness() -> Iterator[ModelHarness]:
    harness = ModelHarness()
    yield harness
    harness.close()


def contents(harness: ModelHarness) -> list[str]:
    return sorted(key for key in harness.world.objects.objects or () if key.startswith("mail/"))


def pass_days(harness: ModelHarness, days: int) -> None:
    """So much time passes; at the end the server runs for the minutes that a pass of the sweep takes."""
    harness.advance(days * DAY)
    for _ in range(6):
        harness.advance(61)


def swept(bench: Bench) -> int:
    queue: Any = bench.queue
    return int(queue.parts.sweep.removed)


def test_a_content_without_rows_is_removed_when_it_is_old(harness: ModelHarness) -> None:
    bench = Bench(harness, harness.make())
    assert harness.server is not None
    harness.server.rows.fates.plan(Fate.NOT_DONE, call="write")
    with pytest.raises(Exception, match="refused"):
        bench.put()
    assert len(contents(harness)) == 1
    for _ in range(8):
        harness.advance(600)
    assert len(contents(harness)) == 1, "a commit under way may name it yet"
    pass_days(harness, 3)
    assert contents(harness) == []
    assert swept(bench) == 1


def test_a_content_that_could_not_be_removed_goes_with_its_index(harness: ModelHarness) -> None:
    bench = Bench(harness, harness.make())
    assert harness.server is not None
    bench.put(addresses(2))
    bench.defer(bench.take_ids(), bench.now() + 100)
    harness.advance(101)
    taken = bench.take_ids(Area.DEFERRED)
    harness.server.objects.fates.plan(*[Fate.NOT_DONE] * 5, call="remove")
    assert len(bench.remove(taken)) == 1
    harness.advance(30)
    assert len(contents(harness)) == 1
    assert rows(harness, MAILS) == [], "the index goes first"
    harness.server.objects.fates.forget()
    pass_days(harness, 3)  # the pass that was begun before ends
    pass_days(harness, 1)
    assert contents(harness) == []


def test_a_kill_between_the_last_mark_and_the_rest_leaves_nothing_for_ever(harness: ModelHarness) -> None:
    bench = Bench(harness, harness.make())
    assert harness.server is not None
    spool_id = bench.put(addresses(2))
    bench.defer(bench.take_ids(), bench.now() + 100)
    harness.advance(101)
    taken = bench.take_ids(Area.DEFERRED)
    harness.server.rows.fates.plan(Fate.DONE, *[Fate.NOT_DONE] * 10, call="write")
    bench.remove(taken)
    bench = Bench(harness, harness.crash(bench.queue))
    harness.advance(10)
    assert bench.take_ids(Area.DEFERRED) == []
    assert len(contents(harness)) == 1
    assert len(rows(harness, MAILS)) > 0
    pass_days(harness, 3)
    pass_days(harness, 3)
    assert contents(harness) == [], f"{spool_id:X}"
    assert rows(harness, MAILS) == []


def test_what_lives_stays_wherever_it_has_moved(harness: ModelHarness) -> None:
    bench = Bench(harness, harness.make())
    bench.put()
    plain = bench.take_ids()
    several = bench.put(addresses(3))
    first, *others = bench.take_ids()
    bench.remove([first])
    bench.defer(others, bench.now() + 30 * DAY)
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 30 * DAY)
    for _ in range(4):
        pass_days(harness, 3)
    assert len(contents(harness)) == 3
    assert swept(bench) == 0
    assert bench.read(several) == CONTENT
    assert bench.read(plain[0].spool_id) == CONTENT


def test_a_live_message_whose_index_was_lost_keeps_its_content(harness: ModelHarness) -> None:
    bench = Bench(harness, harness.make())
    spool_id = bench.put(addresses(2))
    bench.defer(bench.take_ids(), bench.now() + 30 * DAY)
    harness.advance(1)
    harness.world.rows.tables[MAILS.name].clear()
    pass_days(harness, 3)
    pass_days(harness, 3)
    assert bench.read(spool_id) == CONTENT
    assert swept(bench) == 0


def test_a_share_that_can_not_be_read_stops_it(harness: ModelHarness) -> None:
    bench = Bench(harness, harness.make())
    bench.put()
    for partition in harness.world.rows.tables[ENQUEUED.name].values():
        for place in [place for place in partition.rows if place[1] == 0]:
            del partition.rows[place]
    harness.wait(harness.world.server().objects.put("mail/100/0000000100000001", WholeBody(b"x")))
    pass_days(harness, 3)
    assert len(contents(harness)) == 2
    assert swept(bench) == 0


def test_work_is_bounded_by_turns(harness: ModelHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "KEYS", 3)
    monkeypatch.setattr(sweeping, "MOST_SUSPECTS", 4)
    bench = Bench(harness, harness.make())
    for number in range(10):
        key = f"mail/100/00000001{number:08x}"
        harness.wait(harness.world.server().objects.put(key, WholeBody(b"x")))
    counts = []
    for _ in range(14):
        harness.advance(60)
        counts.append(len(contents(harness)))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 10
    assert counts[-1] == 0
    assert all(before - after <= 6 for before, after in itertools.pairwise(counts))
    assert swept(bench) == 10


def test_one_server_sweeps_and_its_heir_goes_on() -> None:
    servers = Servers()
    one, two = servers.start("one"), servers.start("two")
    servers.wait(servers.world.server().objects.put("mail/100/0000000100000001", WholeBody(b"x")))
    servers.advance(200)
    assert [node.shared.parts.sweep.removed for node in (one, two)] == [1, 0]
    one.kill()
    servers.wait(servers.world.server().objects.put("mail/100/0000000100000002", WholeBody(b"x")))
    servers.advance(3900)
    assert two.shared.parts.sweep.removed == 1
