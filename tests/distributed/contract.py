"""The contract of a queue, without what takes long: that has the marker `exhaustive`."""

from __future__ import annotations

import itertools

import pytest

from mailismus.queue.acts.act import ActKind
from tests.contracts.acting import OTHER_RECIPIENT
from tests.contracts.harness import DurableHarness
from tests.contracts.queue_contract import DurableQueueContract

ACTS = (
    (ActKind.HOLD, ""),
    (ActKind.DELETE, ""),
    (ActKind.REDIRECT, "relay:25"),
    (ActKind.REDIRECT, OTHER_RECIPIENT),
)
STOPS = tuple(itertools.product(ACTS, (0, 3, 12), (False, True)))
IN_SHORT = {(ACTS[0], 0, True), (ACTS[1], 3, False), (ACTS[2], 3, True)}
"""Each of these takes seconds: thousands of entries move by batches of 40 KiB."""


class DurableContractInShort(DurableQueueContract):
    """With few of the stops in the middle of an act."""

    @pytest.mark.parametrize(
        ("act", "steps", "is_crash"),
        [pytest.param(*stop, marks=() if stop in IN_SHORT else pytest.mark.exhaustive) for stop in STOPS],
    )
    def test_a_stop_in_the_middle_is_gone_on_from(  # type: ignore[override]  # the parameters come in another way
        self, harness: DurableHarness, act: tuple[ActKind, str], steps: int, *, is_crash: bool
    ) -> None:
        super().test_a_stop_in_the_middle_is_gone_on_from(harness, *act, steps, is_crash=is_crash)
