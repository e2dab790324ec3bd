"""The clustered provider keeps the contract, over restarts, power cuts and failing barriers."""

from __future__ import annotations

import pytest

from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.queue_contract import (
    DurableQueueContract,
    FailingQueueContract,
    QueueContract,
    check_against_a_model,
)


class TestClusteredQueue(QueueContract):
    @pytest.fixture(params=[False, True], ids=["counted", "linked"])
    def hardlinks(self, request: pytest.FixtureRequest) -> bool:
        return bool(request.param)

    @pytest.fixture(params=[131072, 0], ids=["young-contents", "every-content-in-its-silo"])
    def harness(self, request: pytest.FixtureRequest, hardlinks: bool) -> ClusteredHarness:
        return ClusteredHarness(queue_settings(largemsgsize=request.param, hardlinks=hardlinks))


class TestClusteredQueueOverRestarts(DurableQueueContract):
    @pytest.fixture(params=[False, True], ids=["counted", "linked"])
    def hardlinks(self, request: pytest.FixtureRequest) -> bool:
        return bool(request.param)

    @pytest.fixture(params=[131072, 0], ids=["young-contents", "every-content-in-its-silo"])
    def harness(self, request: pytest.FixtureRequest, hardlinks: bool) -> ClusteredHarness:
        return ClusteredHarness(queue_settings(largemsgsize=request.param, hardlinks=hardlinks))


class TestClusteredQueueInTrouble(FailingQueueContract):
    @pytest.fixture
    def harness(self) -> ClusteredHarness:
        return ClusteredHarness()


def test_it_does_what_a_dict_would() -> None:
    check_against_a_model(ClusteredHarness)
