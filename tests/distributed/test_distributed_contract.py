"""The shared queue keeps the contract over models of its stores: over restarts, crashes, and while they are away."""

from __future__ import annotations

import itertools

import pytest

from mailismus.queue.acts.act import ActKind
from tests.contracts.acting import OTHER_RECIPIENT
from tests.contracts.queue_contract import (
    DurableQueueContract,
    FailingQueueContract,
    QueueContract,
    check_against_a_model,
)
from tests.distributed.harness import ModelHarness


class TestDistributedQueue(QueueContract):
    @pytest.fixture
    def harness(self) -> ModelHarness:
        return ModelHarness()


ACTS = (
    (ActKind.HOLD, ""),
    (ActKind.DELETE, ""),
    (ActKind.REDIRECT, "relay:25"),
    (ActKind.REDIRECT, OTHER_RECIPIENT),
)
STOPS = tuple(itertools.product(ACTS, (0, 3, 12), (False, True)))
IN_SHORT = {(ACTS[0], 0, True), (ACTS[1], 3, False), (ACTS[2], 3, True)}
"""Each of these takes seconds: thousands of entries move by batches of 40 KiB."""


class TestDistributedQueueOverRestarts(DurableQueueContract):
    @pytest.fixture
    def harness(self) -> ModelHarness:
        return ModelHarness()

    @pytest.mark.parametrize(
        ("act", "steps", "is_crash"),
        [pytest.param(*stop, marks=() if stop in IN_SHORT else pytest.mark.exhaustive) for stop in STOPS],
    )
    def test_a_stop_in_the_middle_is_gone_on_from(  # type: ignore[override]  # the parameters come in another way
        self, harness: ModelHarness, act: tuple[ActKind, str], steps: int, *, is_crash: bool
    ) -> None:
        super().test_a_stop_in_the_middle_is_gone_on_from(harness, *act, steps, is_crash=is_crash)


class TestDistributedQueueInTrouble(FailingQueueContract):
    @pytest.fixture
    def harness(self) -> ModelHarness:
        return ModelHarness()


def test_it_does_what_a_dict_would() -> None:
    check_against_a_model(ModelHarness)
