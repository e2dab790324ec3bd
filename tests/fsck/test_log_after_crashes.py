"""As `test_after_crashes`, of the log-structured queue."""

from __future__ import annotations

import pytest

from mailismus.queue.fsck.local import segments
from mailismus.queue.providers.log.fsck.check import checking_of, report_of
from mailismus.queue.providers.log.fsck.repair import LogRepairReport
from tests.durability.crash.catalogue import LOG as OPERATIONS
from tests.durability.crash.recovery import LATER
from tests.durability.crash.workloads import longer
from tests.durability.subjects.clustered import SEGMENT
from tests.durability.subjects.log import LOG
from tests.fsck.after_crashes import REPAIRED_EACH, CrashedQueue

SAMPLE, MANY = 16, 400
"""Crashes of each workload: each time, and in the exhaustive form."""

WORKLOADS = longer(OPERATIONS)

QUEUE = CrashedQueue(
    LOG,
    lambda settings, disk: report_of(checking_of(settings, disk, LATER)),
    lambda settings, disk, random_bytes: LogRepairReport(settings, disk, random_bytes, LATER),
)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SMALLEST", SEGMENT)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_crash_never_looks_like_damage(name: str) -> None:
    for tree in QUEUE.states_of(name, WORKLOADS[name], SAMPLE):
        assert QUEUE.look(tree) == []


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_repair_after_a_crash_finds_what_a_start_finds(name: str) -> None:
    for tree in QUEUE.states_of(name, WORKLOADS[name], SAMPLE)[::REPAIRED_EACH]:
        QUEUE.check_repair(tree)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WORKLOADS)
def test_none_of_many_crashes_looks_like_damage(name: str) -> None:
    for number, tree in enumerate(QUEUE.states_of(name, WORKLOADS[name], MANY)):
        assert QUEUE.look(tree) == []
        if not number % REPAIRED_EACH:
            QUEUE.check_repair(tree)
