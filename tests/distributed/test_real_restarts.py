"""The shared queue keeps the contract over the real services: over restarts and crashes, and while they are away.

All tests of this module share the tables, and a test is alone in the world that it sees. Each is skipped, with the reason,
where one of the services is not up.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contracts.harness import DurableHarness
from tests.contracts.queue_contract import FailingQueueContract, check_against_a_model
from tests.distributed.contract import DurableContractInShort
from tests.distributed.real.harness import RealQueueHarness, a_harness
from tests.distributed.real.place import RealPlace

pytestmark = pytest.mark.usefixtures("_name_threads")


@pytest.fixture(scope="module")
def cuttable(_name_threads: None) -> Iterator[RealPlace]:
    place = RealPlace("swift", is_cuttable=True)
    yield place
    place.close()


class TestRealQueueOverRestarts(DurableContractInShort):
    @pytest.fixture
    def harness(self, place: RealPlace) -> Iterator[RealQueueHarness]:
        yield from a_harness(place)

    @pytest.mark.parametrize("has_rested", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
    def test_attempts_are_kept_over_stops_an_act_and_its_undoing(self, harness: DurableHarness, *, has_rested: bool) -> None:
        super().test_attempts_are_kept_over_stops_an_act_and_its_undoing(harness, has_rested=has_rested)


class TestRealQueueInTrouble(FailingQueueContract):
    @pytest.fixture
    def harness(self, cuttable: RealPlace) -> Iterator[RealQueueHarness]:
        yield from a_harness(cuttable)


def test_it_does_what_a_dict_would(place: RealPlace) -> None:
    check_against_a_model(lambda: RealQueueHarness(place), examples=3, steps=20)
