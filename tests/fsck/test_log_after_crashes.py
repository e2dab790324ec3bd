"""As `test_after_crashes`, of the log-structured queue."""

from __future__ import annotations

import random

import pytest

from mailismus.queue.fsck.finding import Finding, Severity
from mailismus.queue.fsck.local import segments
from mailismus.queue.providers.log.fsck.check import LogCheckReport, checking_of
from mailismus.queue.providers.log.fsck.repair import LogRepairReport
from tests.durability.crash.catalogue import LOG as OPERATIONS
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.explorer import Explorer
from tests.durability.crash.recovery import LATER, recover
from tests.durability.crash.states import Crash, FileSystem, Story
from tests.durability.crash.tree import Tree
from tests.durability.crash.workloads import longer
from tests.durability.subjects.clustered import SEGMENT
from tests.durability.subjects.log import LOG
from tests.fsck.test_after_crashes import REPAIRED_EACH, ROOTS, TORN_BY_A_BYTE
from tests.fsck.worlds import kinds

SAMPLE = 40
"""States of each workload."""

WORKLOADS = longer(OPERATIONS)
SETTINGS = LOG.settings(hardlinks=False)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SMALLEST", SEGMENT)


def states_of(name: str) -> list[Tree]:
    """Trees that crashes in this workload leave, each once."""
    world, _ = Explorer(LOG).run(WORKLOADS[name])
    story = Story(world.disk.acts)
    count = sum(1 for system in FileSystem for _ in story.crashes(0, system))
    chosen = frozenset(random.Random(name).sample(range(count), min(SAMPLE, count)))
    crashes = enumerate(crash for system in FileSystem for crash in story.crashes(0, system))
    trees = [story.tree(crash) for number, crash in crashes if number in chosen]  # as they come: a story goes on
    return list({tree.digest: tree for tree in trees if set(tree.names.directories) >= ROOTS}.values())


def look(tree: Tree) -> list[Finding]:
    """What needs a repair."""
    found = LogCheckReport(checking_of(SETTINGS, TreeDisk(tree), LATER))
    return [finding for finding in found if finding.severity.needs_repair and finding.kind != TORN_BY_A_BYTE]


def repair(tree: Tree) -> Tree:
    """What a repair makes of it; what it has set aside is taken away."""
    disk = TreeDisk(tree)
    found = list(LogRepairReport(SETTINGS, disk, random.Random(tree.digest).randbytes, LATER))
    assert [finding for finding in found if finding.severity is Severity.LOST or finding.error] == []
    assert kinds(LogCheckReport(checking_of(SETTINGS, disk, LATER))) == []
    if disk.exists("/q/corrupt"):
        for name in disk.list_directory("/q/corrupt"):
            disk.unlink(f"/q/corrupt/{name}")
    return Story(disk.acts, tree).tree(Crash(len(disk.acts)))


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_crash_never_looks_like_damage(name: str) -> None:
    for tree in states_of(name):
        assert look(tree) == []


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_repair_after_a_crash_finds_what_a_start_finds(name: str) -> None:
    for tree in states_of(name)[::REPAIRED_EACH]:
        if TORN_BY_A_BYTE in kinds(LogCheckReport(checking_of(SETTINGS, TreeDisk(tree), LATER))):
            continue
        wanted, found = recover(tree, LOG, hardlinks=False), recover(repair(tree), LOG, hardlinks=False)
        assert found.live == wanted.live
        assert found.contents == wanted.contents
