"""After a crash a look finds nothing but what the next start sees to, and a repair changes nothing that a start would find.

The crash states are those that `tests.durability.crash` explores.
"""

from __future__ import annotations

import attrs
import pytest

from mailismus.journal import segment
from mailismus.queue.fsck.local import segments
from mailismus.queue.providers.clustered.fsck.check import checking_of, report_of
from mailismus.queue.providers.clustered.fsck.repair import RepairReport
from tests.durability.crash.recovery import LATER
from tests.durability.crash.workloads import LINKED, LONGER
from tests.durability.subjects.clustered import CLUSTERED, SEGMENT
from tests.fsck.after_crashes import REPAIRED_EACH, CrashedQueue

SAMPLE, MANY = 40, 1000
"""Crashes of each workload: each time, and in the exhaustive form."""


QUEUE = CrashedQueue(
    CLUSTERED,
    lambda settings, disk: report_of(checking_of(settings, disk, LATER)),
    lambda settings, disk, random_bytes: RepairReport(settings, disk, random_bytes, LATER),
)
LINKED_QUEUE = attrs.evolve(QUEUE, hardlinks=True)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (segment, segments):
        monkeypatch.setattr(module, "SMALLEST", SEGMENT)


@pytest.mark.parametrize("name", LONGER)
def test_a_crash_never_looks_like_damage(name: str) -> None:
    for tree in QUEUE.states_of(name, LONGER[name], SAMPLE):
        assert QUEUE.look(tree) == []


@pytest.mark.parametrize("name", LINKED)
def test_a_crash_never_looks_like_damage_with_hard_links(name: str) -> None:
    for tree in LINKED_QUEUE.states_of(name, LONGER[name], SAMPLE):
        assert LINKED_QUEUE.look(tree) == []


@pytest.mark.parametrize("name", LONGER)
def test_a_repair_after_a_crash_finds_what_a_start_finds(name: str) -> None:
    for tree in QUEUE.states_of(name, LONGER[name], SAMPLE)[::REPAIRED_EACH]:
        QUEUE.check_repair(tree)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LONGER)
def test_none_of_many_crashes_looks_like_damage(name: str) -> None:
    for number, tree in enumerate(QUEUE.states_of(name, LONGER[name], MANY)):
        assert QUEUE.look(tree) == []
        if not number % REPAIRED_EACH:
            QUEUE.check_repair(tree)
