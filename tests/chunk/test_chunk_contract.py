"""The one-file-a-message provider keeps the contract, over restarts, power cuts and failing barriers."""

from __future__ import annotations

import pytest

from tests.chunk.harness import ChunkHarness
from tests.contracts.queue_contract import (
    DurableQueueContract,
    FailingQueueContract,
    QueueContract,
    check_against_a_model,
)


class TestChunkQueue(QueueContract):
    @pytest.fixture(params=[False, True], ids=["as-they-came", "preprocessed"])
    def harness(self, request: pytest.FixtureRequest) -> ChunkHarness:
        return ChunkHarness(preprocesses=request.param)


class TestChunkQueueOverRestarts(DurableQueueContract):
    @pytest.fixture(params=[False, True], ids=["as-they-came", "preprocessed"])
    def harness(self, request: pytest.FixtureRequest) -> ChunkHarness:
        return ChunkHarness(preprocesses=request.param)


class TestChunkQueueInTrouble(FailingQueueContract):
    @pytest.fixture(params=[False, True], ids=["as-they-came", "preprocessed"])
    def harness(self, request: pytest.FixtureRequest) -> ChunkHarness:
        return ChunkHarness(preprocesses=request.param)


def test_it_does_what_a_dict_would() -> None:
    check_against_a_model(ChunkHarness)
