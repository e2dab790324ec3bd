"""Few files: the calendar's slots widen with distance, so hours of deferrals lie in some hundred clusters at most."""

from __future__ import annotations

import random

import pytest

from mailismus.queue.interface import Area, Settlement
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses, ids

STEP_S = 30
HOURS = 4
DELAYS_S = (900, 1800, 7200, 14400)
"""The default of `retry_delays`."""
ALLOWED = 400


@pytest.mark.parametrize("a_second", [1, pytest.param(10, marks=pytest.mark.exhaustive)])
def test_deferrals_of_hours_lie_in_few_clusters(a_second: int) -> None:
    """All that is deferred stays deferred: each entry is tried when it is due, and put off again by the default delays,
    lengthened by up to a tenth."""
    harness = ClusteredHarness(queue_settings())
    bench = Bench(harness, harness.open())
    rng = random.Random(1)
    most, excess = 0, 0.0
    deferred = 0

    def put_off(area: Area) -> int:
        messages = bench.take(area, 100_000)
        settlements = [
            Settlement(
                queue_id,
                Area.DEFERRED,
                harness.now() + DELAYS_S[min(entry.attempts, 3)] * (1 + rng.random() / 10),
                entry.attempts + 1,
            )
            for message in messages
            for queue_id, entry in zip(ids([message]), message.entries, strict=True)
        ]
        bench.commit((), settlements)
        return len(settlements)

    for _ in range(HOURS * 3600 // STEP_S):
        bench.put(addresses(a_second * STEP_S), b"x")
        put_off(Area.INCOMING)
        deferred += put_off(Area.DEFERRED)
        harness.clock.pump([0.05] * 20)
        harness.clock.advance(STEP_S - 1)
        sizes = [len(inode.data) for name, inode in harness.disk.names.items() if name.endswith(".mqc")]
        most = max(most, len(sizes))
        excess = max(excess, len(sizes) - sum(sizes) / harness.settings.maxclustersize)
    assert excess <= ALLOWED
    assert most > 50
    assert deferred > 10_000 * a_second
