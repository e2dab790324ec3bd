"""Pages of a search: a cluster is read once, however many pages it fills."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Filter
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench, addresses

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
