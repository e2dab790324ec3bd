"""The log-structured provider keeps the contract, over restarts, power cuts and failing barriers."""

from __future__ import annotations

import pytest

from mailismus.queue.providers.log.control import ledger, loading, piece_reading
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


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything rests until it is due."""
    monkeypatch.setattr(ledger, "MOST_NEW", 0)
    monkeypatch.setattr(ledger, "NEAR_S", 0.0)
    monkeypatch.setattr(loading, "AHEAD_S", 0.0)
    monkeypatch.setattr(piece_reading, "PIECE_BYTES", 4096)
    monkeypatch.setattr(loading, "PIECES_A_TAKE", 1000)
    monkeypatch.setattr(loading, "TAKE_S", 1000.0)


@pytest.mark.usefixtures("little_memory")
class TestLogQueueThatRests(QueueContract):
    @pytest.fixture
    def harness(self) -> LogHarness:
        return LogHarness()


@pytest.mark.usefixtures("little_memory")
class TestLogQueueThatRestsOverRestarts(DurableQueueContract):
    @pytest.fixture
    def harness(self) -> LogHarness:
        return LogHarness()


def test_it_does_what_a_dict_would() -> None:
    check_against_a_model(LogHarness)


@pytest.mark.usefixtures("little_memory")
def test_it_does_so_with_little_memory() -> None:
    check_against_a_model(LogHarness)
