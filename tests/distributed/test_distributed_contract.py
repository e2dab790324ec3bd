"""The shared queue keeps the contract over models of its stores: over restarts, crashes, and while they are away."""

from __future__ import annotations

import pytest

from tests.contracts.queue_contract import FailingQueueContract, QueueContract, check_against_a_model
from tests.distributed.contract import DurableContractInShort
from tests.distributed.harness import ModelHarness


class TestDistributedQueue(QueueContract):
    @pytest.fixture
    def harness(self) -> ModelHarness:
        return ModelHarness()


class TestDistributedQueueOverRestarts(DurableContractInShort):
    @pytest.fixture
    def harness(self) -> ModelHarness:
        return ModelHarness()


class TestDistributedQueueInTrouble(FailingQueueContract):
    @pytest.fixture
    def harness(self) -> ModelHarness:
        return ModelHarness()


def test_it_does_what_a_dict_would() -> None:
    check_against_a_model(ModelHarness)
