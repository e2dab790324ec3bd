"""Taking over what a checkpoint moved, slice by slice: whatever happens between two slices, each entry is there once."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from mailismus.errors import Unavailable
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.clustered.checkpoint import apply as takeover
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses, beyond
from tests.contracts.queue_contract import DurableQueueContract, FailingQueueContract, QueueContract, check_against_a_model
from tests.fakes.worker import ACT_S

PAUSE_S = 1.5 * ACT_S


@pytest.fixture(autouse=True)
def _small_slices(request: pytest.FixtureRequest) -> Iterator[None]:
    with (
        patch.object(takeover, "SLICE", 1 if request.cls is None else 5),
        patch("mailismus.queue.providers.clustered.checkpoint.sealing.PAUSE_S", PAUSE_S),
    ):
        yield


class TestSliceBySlice(QueueContract):
    @pytest.fixture(params=[False, True], ids=["counted", "linked"])
    def harness(self, request: pytest.FixtureRequest) -> ClusteredHarness:
        return ClusteredHarness(queue_settings(hardlinks=request.param))


class TestSliceBySliceOverRestarts(DurableQueueContract):
    @pytest.fixture(params=[False, True], ids=["counted", "linked"])
    def harness(self, request: pytest.FixtureRequest) -> ClusteredHarness:
        return ClusteredHarness(queue_settings(hardlinks=request.param))


class TestSliceBySliceInTrouble(FailingQueueContract):
    @pytest.fixture
    def harness(self) -> ClusteredHarness:
        return ClusteredHarness()


def between(recipients: int, *, links: bool = False, taken: int = 1) -> tuple[ClusteredHarness, Bench, ClusteredQueue]:
    """A queue with a message for so many, of whom so many rest; the others are about to."""
    harness = ClusteredHarness(queue_settings(hardlinks=links))
    bench = Bench(harness, harness.make())
    queue = bench.queue
    assert isinstance(queue, ClusteredQueue)
    harness.settle_down()
    bench.put(addresses(recipients))
    queue.checkpoints.run()
    while queue.checkpoints.counts.made < 1:
        harness.clock.advance(ACT_S)
    for _ in range(taken - 1):
        harness.clock.advance(PAUSE_S)
    assert queue.ledger.memtable.entry_count == recipients - taken
    return harness, bench, queue


def settle(harness: ClusteredHarness, queue: ClusteredQueue, settlement: Settlement) -> None:
    """Durable before the next slice."""
    harness.wait(queue.commit((), (settlement,)))


def numbers(bench: Bench) -> list[int]:
    return [entry.number for _, entry in bench.search()]


def files(harness: ClusteredHarness) -> list[str]:
    return [name for name in harness.disk.names if name.endswith(".msg")]


def test_each_entry_is_seen_and_counted_once_whenever_somebody_looks() -> None:
    harness, bench, queue = between(4)
    for rest in range(1, 5):
        assert sorted(numbers(bench)) == [1, 2, 3, 4]
        assert harness.count(queue.counting_plan()).areas[Area.INCOMING].entries == 4
        assert queue.ledger.memtable.entry_count <= 4 - rest
        harness.clock.advance(PAUSE_S)
    assert queue.state.pending is None


def test_a_search_that_begins_between_two_slices_gives_nothing_twice() -> None:
    harness, _, queue = between(4, taken=2)
    first = harness.wait(queue.search(Filter(), None, 1))
    harness.settle_down()
    assert queue.state.pending is None
    rest = harness.wait(queue.search(Filter(), first.cursor, 10))
    found = [entry.number for page in (first, rest) for message in page.messages for entry in message.entries]
    assert len(found) == len(set(found)) == 3  # the first page's, and what rested when it began


def test_each_entry_is_handed_out_once() -> None:
    harness, bench, _ = between(4, taken=2)
    found = [queue_id.number for queue_id in bench.take_ids()]
    harness.settle_down()
    found += [queue_id.number for queue_id in bench.take_ids()]
    assert sorted(found) == [1, 2, 3, 4]


@pytest.mark.parametrize("links", [False, True])
def test_what_is_over_before_its_slice_is_over_for_good(links: bool) -> None:
    harness, bench, queue = between(3, links=links)
    taken = bench.take_ids(limit=10)
    last = max(taken)
    settle(harness, queue, Settlement(last, None))
    again = Bench(harness, harness.crash(queue))
    assert last.number not in numbers(again)
    harness.settle_down()
    again.remove(again.take_ids())
    harness.settle_down()
    assert not files(harness)


@pytest.mark.parametrize("links", [False, True])
def test_bytes_go_with_the_last_entry_though_all_were_over_before_their_slices(links: bool) -> None:
    harness, bench, queue = between(3, links=links, taken=1)
    bench.put()
    for queue_id in bench.take_ids(limit=10):
        settle(harness, queue, Settlement(queue_id, None))
    harness.settle_down()
    assert bench.search() == []
    assert not files(harness)


def test_what_is_retried_before_its_slice_is_there_once() -> None:
    harness, bench, queue = between(3)
    taken = bench.take_ids(limit=10)
    settle(harness, queue, Settlement(max(taken), Area.DEFERRED, bench.now() + 60, 1))
    assert sorted(numbers(bench)) == [1, 2, 3]
    harness.settle_down()
    assert sorted(numbers(bench)) == [1, 2, 3]
    assert sorted(numbers(Bench(harness, harness.crash(queue)))) == [1, 2, 3]


@pytest.mark.parametrize("waits_s", [0, 4])
def test_a_barrier_that_fails_between_two_slices_says_nothing_again_that_rests(waits_s: int) -> None:
    harness, bench, queue = between(4)
    left = [1]

    def fault(act: str, path: str) -> OSError | None:
        if left[0] and act == "sync" and "/q/journal" in path:
            left[0] = 0
            return OSError(5, "injected")
        return None

    harness.disk.fault = fault
    refused: list[object] = []
    queue.commit([bench.submission()], ()).addErrback(refused.append)
    harness.settle_down()
    assert refused
    harness.advance(waits_s)
    harness.settle_down()
    if waits_s:
        assert sorted(numbers(bench)) == [1, 2, 3, 4]
    assert sorted(numbers(Bench(harness, harness.crash(queue)))) == [1, 2, 3, 4]


def test_a_stop_between_two_slices_waits_for_the_others() -> None:
    harness, _, queue = between(4)
    again = Bench(harness, harness.restart(queue))
    assert sorted(numbers(again)) == [1, 2, 3, 4]


def test_a_stop_in_trouble_between_two_slices_ends_too() -> None:
    harness, _, queue = between(4)
    harness.break_down(queue)
    refused: list[object] = []
    queue.commit([Bench(harness, queue).submission()], ()).addErrback(refused.append)
    harness.clock.pump([ACT_S] * 3)
    assert refused
    closed: list[None] = []
    queue.close().addCallback(closed.append)
    harness.clock.pump([1.0] * 10)
    assert closed
    assert queue.state.pending is None


def test_the_journal_stays_until_all_is_taken_over() -> None:
    harness, _, queue = between(4, taken=2)
    assert queue.state.pending is not None
    assert queue.parts.opened.writer.horizon < queue.state.pending.horizon
    harness.settle_down()
    assert queue.state.pending is None
    assert queue.parts.opened.writer.horizon > 0


def test_a_fault_of_our_own_in_it_stops_mail_and_loses_none() -> None:
    harness, bench, queue = between(4)
    with patch.object(queue.ledger, "move_entries", side_effect=ZeroDivisionError("ours")):
        harness.clock.advance(PAUSE_S)
    with pytest.raises(Unavailable):
        queue.draft()
    queue.hasten(beyond(0.0, bench.now()), bench.now())
    assert harness.wait(queue.visit_all(Filter(), bench.now())).entries == 0
    assert sorted(numbers(Bench(harness, harness.crash(queue)))) == [1, 2, 3, 4]


def test_it_does_what_a_dict_would() -> None:
    check_against_a_model(ClusteredHarness)
