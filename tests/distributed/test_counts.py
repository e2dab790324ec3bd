"""Counts are those of a full visit, at a cost that does not grow with the queue; after kills they are made anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement, Summary
from mailismus.queue.providers.distributed.browse.counting import count_all
from mailismus.queue.providers.distributed.browse.recounting import LOOK_S
from mailismus.queue.providers.distributed.browse.sizes import EACH_S
from mailismus.queue.providers.distributed.counts.keeping import WRITE_S
from mailismus.queue.providers.distributed.counts.numbers import Numbers, slot_of
from mailismus.queue.providers.distributed.counts.stored import RECOUNT, CountRow, rows_of_area
from mailismus.queue.providers.distributed.format.tables import SLICE_COUNTS
from mailismus.queue.providers.distributed.identity.lease import LEASE_S
from mailismus.queue.providers.distributed.metrics import METRICS, DistributedFigures
from mailismus.queue.providers.distributed.stores.rows import RowTable
from tests.contracts.bench import LATER_REPLY, Bench, addresses
from tests.distributed.commands import ModelCommands
from tests.distributed.harness import ModelHarness
from tests.distributed.servers import Node, Servers
from tests.distributed.world import Server


def counted(servers: Servers, node: Node) -> Summary:
    return servers.wait(node.queue.summary())


def visited(servers: Servers, node: Node) -> Summary:
    """What is found where all is read."""
    parts = node.shared.parts
    return servers.wait(Deferred.fromCoroutine(count_all(parts.stores.rows, parts.hand, parts.starts, servers.now(), "")))


def assert_exact(servers: Servers, node: Node) -> None:
    assert counted(servers, node) == visited(servers, node)


def settle_some(node: Node, rng: random.Random, at: float) -> None:
    """Deliver, defer and bounce some of what may be taken, each in pieces."""
    taken = [queue_id for area in (Area.INCOMING, Area.DEFERRED) for queue_id in node.take_ids(area, limit=20)]
    rng.shuffle(taken)
    third = len(taken) // 3
    node.remove(taken[:third])
    node.defer(taken[third : 2 * third], at + rng.choice((5, 20, 400)))
    rest = taken[2 * third :]
    node.commit((), [Settlement(one, Area.BOUNCES, at, 1, LATER_REPLY) for one in rest[:1]])
    node.queue.give_back(rest[1:], at)


def test_a_message_counts_once_in_an_area_however_it_is_split(servers: Servers) -> None:
    one = servers.start("one")
    one.put(addresses(1200), b"x" * 70)
    assert counted(servers, one).areas[Area.INCOMING].messages == 1
    for delay in (5000, 9000, 13_000):
        one.defer(one.take_ids(limit=100), servers.now() + delay)
        assert_exact(servers, one)
    found = counted(servers, one).areas[Area.DEFERRED]
    assert (found.entries, found.messages, found.stored_bytes) == (300, 1, 70)


@pytest.mark.parametrize("seed", range(4))
def test_counts_of_two_servers_are_those_of_a_full_visit(servers: Servers, seed: int) -> None:
    rng = random.Random(seed)
    nodes = [servers.start("one"), servers.start("two")]
    for _ in range(12):
        node = rng.choice(nodes)
        for _ in range(rng.randrange(3)):
            node.put(addresses(rng.choice((1, 1, 3, 40))))
        settle_some(node, rng, servers.now())
        servers.advance(rng.choice((1.0, 30.0)))
        own = counted(servers, node)
        assert own.exact
    servers.advance(2 * WRITE_S)
    for node in nodes:
        assert_exact(servers, node)
    servers.wait(nodes[0].queue.close())
    servers.advance(2 * WRITE_S)
    assert_exact(servers, nodes[1])


def test_entries_of_several_slices_count_once_and_in_their_slices(servers: Servers) -> None:
    one = servers.start("one")
    one.put(addresses(6))
    for _ in range(3):
        one.defer(one.take_ids(limit=2), servers.now() + 50_000)
        for _ in range(72):
            servers.advance(50)
    assert_exact(servers, one)
    found = counted(servers, one).areas[Area.DEFERRED]
    assert (found.entries, found.messages) == (6, 1)
    rows = servers.wait(Deferred.fromCoroutine(rows_of_area(one.clients.rows, Area.DEFERRED.value, 0)))
    assert len(rows) == 3


@pytest.mark.parametrize("seed", range(4))
def test_what_a_killed_server_had_not_written_down_is_counted_anew(servers: Servers, seed: int) -> None:
    rng = random.Random(seed)
    one, two = servers.start("one"), servers.start("two")
    for _ in range(3):
        for node in (one, two):
            node.put(addresses(rng.choice((1, 7))))
            settle_some(node, rng, servers.now())
        servers.advance(WRITE_S)
    one.put(addresses(5))  # it is killed before it writes that down
    one.kill()
    assert counted(servers, two).areas != visited(servers, two).areas
    servers.advance(LEASE_S + 1)
    assert not counted(servers, two).exact or counted(servers, two) == visited(servers, two)
    servers.advance(60)
    assert_exact(servers, two)
    two.take_all()
    settle_some(two, rng, servers.now())
    assert_exact(servers, two)


def test_two_servers_that_live_count_anew_what_a_third_one_had(servers: Servers) -> None:
    one, two, three = (servers.start(name) for name in ("one", "two", "three"))
    for node in (one, two, three):
        node.put(addresses(3))
    servers.advance(2 * WRITE_S)
    one.put(addresses(4))
    one.kill()
    servers.advance(LEASE_S + 60)
    for node in (two, three):
        assert_exact(servers, node)
    two.put()
    servers.advance(2 * WRITE_S)
    assert_exact(servers, three)


def test_a_slot_that_is_changed_while_it_is_read_is_recounted_later(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    one.put(addresses(4))
    one.kill()
    servers.advance(LEASE_S - 1)
    for _ in range(40):  # another one each second
        two.put()
        servers.advance(1)
    assert not counted(servers, two).exact or counted(servers, two) == visited(servers, two)
    servers.advance(60)
    assert_exact(servers, two)


def test_a_server_that_starts_behind_a_kill_counts_anew_at_once(servers: Servers) -> None:
    one = servers.start("one")
    one.put(addresses(4))
    one.defer(one.take_ids(limit=2), servers.now() + 100)
    one.kill()
    again = servers.start("one")
    servers.advance(1)
    assert_exact(servers, again)
    assert counted(servers, again).areas[Area.DEFERRED].entries == 2


def test_a_frozen_server_does_not_spoil_the_counts(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    one.put(addresses(3))
    servers.advance(2 * WRITE_S)
    one.put(addresses(5))
    one.freeze(servers, 60)
    servers.advance(30)
    one.host.thaw()
    servers.advance(60)
    for node in (one, two):
        assert_exact(servers, node)
    one.put(addresses(2))
    servers.advance(2 * WRITE_S)
    for node in (one, two):
        assert_exact(servers, node)


def test_what_another_server_has_ended_as_well_is_in_doubt_and_counted_anew(servers: Servers) -> None:
    one = servers.start("one")
    one.put(addresses(3))
    (share,) = one.shared.parts.hand.shares.values()
    parts = one.shared.parts
    with parts.counts.doubting(share.name):
        pass
    assert parts.counts.doubted() == {slot_of(share.name)}
    assert not counted(servers, one).exact
    servers.advance(LOOK_S + 1)
    assert parts.counts.doubted() == set()
    assert_exact(servers, one)


def test_doubts_of_a_server_that_stopped_are_seen_to_by_another_one(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    one.put(addresses(3))
    servers.advance(1)
    (share,) = (*one.shared.parts.hand.shares.values(), *two.shared.parts.hand.shares.values())
    with one.shared.parts.counts.doubting(share.name):
        pass
    servers.wait(one.queue.close())
    assert not counted(servers, two).exact
    servers.advance(60)
    assert_exact(servers, two)


# what a count costs


@contextmanager
def rows_read(server: Server, table: str = "") -> Iterator[list[int]]:
    """The rows that each read gives. `table`: of this one alone."""
    counts: list[int] = []
    client: Any = server.rows
    before = {name: getattr(client, name) for name in ("rows", "rows_under", "all_rows", "row")}

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        def read(asked: RowTable, *args: Any) -> Any:
            def note(found: Any) -> Any:
                if table in ("", asked.name):
                    counts.append(len(found) if isinstance(found, list | tuple) else 1)
                return found

            return call(asked, *args).addCallback(note)

        return read

    for name, call in before.items():
        setattr(client, name, noting(call))
    try:
        yield counts
    finally:
        for name in before:
            delattr(client, name)


def cost_of_a_count(messages: int, recipients: int) -> tuple[int, int, int]:
    """Entries, and the reads and rows of a count."""
    harness = ModelHarness()
    bench = Bench(harness, harness.make())
    for _ in range(messages):
        bench.put(addresses(recipients))
    assert harness.server is not None
    with rows_read(harness.server) as counts:
        found = bench.summary()
    entries = found.areas[Area.INCOMING].entries
    harness.close()
    return entries, len(counts), sum(counts)


def test_a_count_reads_as_much_of_100_000_entries_as_of_1_000() -> None:
    few, *cost = cost_of_a_count(20, 50)
    many, *same = cost_of_a_count(100, 1000)
    assert (few, many) == (1000, 100_000)
    assert cost == same
    assert sum(cost) < 40


def test_rows_of_slices_that_are_gone_go_as_well() -> None:
    harness = ModelHarness()
    bench = Bench(harness, harness.make())
    bench.remove([QueueId(bench.put(), 1)])
    assert harness.server is not None

    def kept() -> set[float]:
        found = harness.wait(harness.world.server().rows.rows(SLICE_COUNTS, (Area.INCOMING.value,)))
        return {row["slice_start"] for row in found if isinstance(row["slice_start"], float)}

    harness.advance(2 * WRITE_S)
    first = kept()
    assert first
    parts: Any = bench.queue
    for _ in range(40):
        harness.advance(3600)
        bench.remove([QueueId(bench.put(), 1)])
        bench.take()
        harness.wait(Deferred.fromCoroutine(parts.parts.starts.move()))
    harness.advance(120)
    assert not first & kept()
    assert len(kept()) < 40


def test_a_count_reads_nothing_before_the_browse_start() -> None:
    harness = ModelHarness()
    bench = Bench(harness, harness.make())
    bench.put(addresses(2))
    before = bench.summary()
    assert harness.server is not None
    for number in range(1, 31):
        slot = (Area.INCOMING.value, harness.now() // 3600 * 3600 - number * 3600)
        harness.wait(harness.server.rows.write([CountRow(slot, 7, Numbers(5, 5, 5)).put(harness.now())]))
    with rows_read(harness.server, SLICE_COUNTS.name) as counts:
        assert bench.summary() == before
    assert sum(counts) < 10


# in metrics


@pytest.mark.parametrize("is_wanted", [True, False])
def test_metrics_tell_how_much_is_in_the_whole_queue_where_that_is_wanted(servers: Servers, *, is_wanted: bool) -> None:
    def shown(node: Node) -> dict[Any, Any]:
        (metric,) = (one for one in METRICS if one.name == "mailismus_distributed_entries")
        value = metric.read(node.shared)
        assert isinstance(value, dict)
        return value

    servers.wants_sizes = is_wanted
    one, two = servers.start("one"), servers.start("two")
    one.put(addresses(3))
    two.put(addresses(4))
    servers.advance(EACH_S + WRITE_S + 1)
    for node in (one, two):
        assert shown(node).get(("incoming",)) == (7 if is_wanted else None)
    here = [node.shared.parts.hand.index.count_in(Area.INCOMING) for node in (one, two)]
    assert sum(here) == 7
    found = [DistributedFigures(node.shared).entries()[Area.INCOMING] for node in (one, two)]
    assert found == ([7, 7] if is_wanted else here)
    one.clients.rows.fates.is_away = True
    servers.advance(EACH_S + 1)
    assert shown(one) == {}
    assert DistributedFigures(one.shared).entries()[Area.INCOMING] == here[0]


# without a server


@pytest.mark.parametrize("is_crash", [False, True])
def test_without_a_server_a_count_is_exact_too(
    is_crash: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harness = ModelHarness()
    commands = ModelCommands(harness, tmp_path, monkeypatch, capsys)
    bench = Bench(harness, harness.make())
    bench.put(addresses(5))
    bench.defer(bench.take_ids(limit=2), bench.now() + 60)
    if is_crash:
        harness.crash_only()
        harness.advance(LEASE_S + 1)
    else:
        harness.wait(bench.queue.close())
    (found,) = commands.objects("queue", "count")
    assert (found["incoming"]["entries"], found["deferred"]["entries"], found["exact"]) == (3, 2, True)


def test_the_first_start_over_a_queue_that_was_never_counted_counts_all(servers: Servers) -> None:
    one = servers.start("one")
    one.put(addresses(5))
    servers.wait(one.queue.close())
    for name in ("slice_counts", "counting_servers"):
        servers.world.rows.tables[name].clear()
    two = servers.start("two")
    servers.advance(1)
    assert_exact(servers, two)
    rows = servers.wait(Deferred.fromCoroutine(rows_of_area(two.clients.rows, Area.INCOMING.value, 0)))
    assert any(RECOUNT in slot_rows for slot_rows in rows.values())
