"""The log-structured provider keeps the contract, over restarts, power cuts and failing barriers."""

from __future__ import annotations

import pytest

from tests.contracts.queue_contract import (
    DurableQueueContract,
    FailingQueueContract,
    QueueContract,
    check_against_a_model,
)
from tests.log.harness import LogHarness, log_settings


class TestLogQueue(QueueContract):
    @pytest.fixture(params=[131072, 0], ids=["contents-in-the-log", "every-content-in-its-silo"])
    def harness(self, request: pytest.FixtureRequest) -> LogHarness:
        return LogHarness(log_settings(largemsgsize=request.param))


class TestLogQueueOverRestarts(DurableQueueContract):
    @pytest.fixture(params=[131072, 0], ids=["contents-in-the-log", "every-content-in-its-silo"])
    def harness(self, request: pytest.FixtureRequest) -> LogHarness:
        return LogHarness(log_settings(largemsgsize=request.param))


class TestLogQueueInTrouble(FailingQueueContract):
    @pytest.fixture
    def harness(self) -> LogHarness:
        return LogHarness()


def test_it_does_what_a_dict_would() -> None:
    check_against_a_model(LogHarness)
