"""Pages of a search: a cluster is read once, however many pages it fills."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Filter
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.read.search import PAGE_CLUSTERS
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench, addresses
from tests.contracts.claiming import claimed_by_page

COUNT = 30


@pytest.fixture
def bench() -> Bench:
    """A queue with `COUNT` entries in one cluster."""
    harness = ClusteredHarness()
    queue: ClusteredQueue = harness.open()
    bench = Bench(harness, queue)
    for _ in range(COUNT // 3):
        bench.put(addresses(3))
    bench.defer(bench.take_ids(), bench.now() + 36_000)
    for _ in range(2):
        harness.wait(queue.checkpoints.run())
    return bench


@pytest.mark.parametrize("limit", [1, 4, 7, COUNT])
def test_a_cluster_is_read_once_for_all_pages_that_it_fills(bench: Bench, limit: int) -> None:
    harness = bench.harness
    assert isinstance(harness, ClusteredHarness)
    clusters = [name for name in harness.disk.names if name.endswith(".mqc")]
    opened: list[str] = []

    def note(act: str, path: str) -> None:
        if act == "open" and path in clusters:
            opened.append(path)

    harness.disk.fault = note
    found = [QueueId(message.spool_id, entry.number) for message, entry in bench.search(Filter(), limit)]
    assert len(found) == len(set(found)) == COUNT
    assert sorted(opened) == sorted(clusters)


def test_a_page_ends_after_some_clusters_though_nothing_matches() -> None:
    harness = ClusteredHarness()
    queue: ClusteredQueue = harness.open()
    bench = Bench(harness, queue)
    for number in range(2 * PAGE_CLUSTERS + 1):
        bench.put(addresses(1))
        bench.defer(bench.take_ids(), bench.now() + 36_000 * (number + 1))
        for _ in range(2):
            harness.wait(queue.checkpoints.run())
    clusters = [name for name in harness.disk.names if name.endswith(".mqc")]
    assert len(clusters) > 2 * PAGE_CLUSTERS
    cursor: object | None = None
    pages: list[int] = []
    opened: list[str] = []

    def note(act: str, path: str) -> None:
        if act == "open" and path in clusters:
            opened.append(path)

    harness.disk.fault = note
    while True:
        page = harness.wait(queue.search(Filter(matches=lambda message, entry: False), cursor, 100))
        assert page.messages == ()
        pages.append(len(opened))
        cursor = page.cursor
        if cursor is None:
            break
    assert pages[0] == PAGE_CLUSTERS
    assert sorted(opened) == sorted(clusters)


def test_a_page_of_a_claim_ends_after_some_messages_in_memory_and_after_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.queue.providers.clustered.read.search.CLAIM_MESSAGES", 2)
    harness = ClusteredHarness()
    queue: ClusteredQueue = harness.open()
    bench = Bench(harness, queue)
    for number in range(3):
        bench.put(addresses(1))
        bench.defer(bench.take_ids(), bench.now() + 36_000 * (number + 1))
        for _ in range(2):
            harness.wait(queue.checkpoints.run())
    last = [bench.put(addresses(1)) for _ in range(5)][-1]
    clusters = [name for name in harness.disk.names if name.endswith(".mqc")]
    nothing = Filter(matches=lambda message, entry: False)
    assert (len(claimed_by_page(bench, nothing)), clusters) == (2 + len(clusters) + 1, clusters)
    wanted = Filter(matches=lambda message, entry: message.spool_id == last)
    assert claimed_by_page(bench, wanted)[1] == [QueueId(last, 1)]
