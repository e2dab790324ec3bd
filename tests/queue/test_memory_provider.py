"""The in-memory provider keeps the contract; what it adds for tests."""

from __future__ import annotations

import pytest

from mailismus.errors import Unavailable
from tests.contracts.bench import Bench
from tests.contracts.queue_contract import FailingQueueContract, QueueContract, check_against_a_model
from tests.queue.memory_harness import MemoryHarness


class TestMemoryQueue(QueueContract):
    @pytest.fixture(params=[0, 5000], ids=["never-pauses", "pauses"])
    def harness(self, request: pytest.FixtureRequest) -> MemoryHarness:
        return MemoryHarness(request.param)


class TestMemoryQueueInTrouble(FailingQueueContract):
    @pytest.fixture
    def harness(self) -> MemoryHarness:
        return MemoryHarness()


def test_it_does_what_a_dict_would() -> None:
    check_against_a_model(MemoryHarness)


def test_only_the_next_commit_fails_when_asked_to() -> None:
    harness = MemoryHarness()
    queue = harness.make()
    bench = Bench(harness, queue)
    submission = bench.submission()
    queue.fail_next_commit(Unavailable("full", full=True))
    with pytest.raises(Unavailable, match="full"):
        bench.commit([submission])
    bench.put()
    assert len(bench.take_ids()) == 1
