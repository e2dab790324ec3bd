"""After a crash a look finds nothing but what the next start sees to, and a repair changes nothing that a start would find.

The crash states are those that `tests.durability.crash` explores.
"""

from __future__ import annotations

import random

import pytest

from mailismus.journal import segment
from mailismus.queue.fsck.finding import Finding, Severity
from mailismus.queue.fsck.local import segments
from mailismus.queue.providers.clustered.fsck.check import CheckReport, checking_of
from mailismus.queue.providers.clustered.fsck.repair import RepairReport
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.explorer import Explorer
from tests.durability.crash.recovery import LATER, recover
from tests.durability.crash.states import Crash, FileSystem, Story
from tests.durability.crash.tree import Tree
from tests.durability.crash.workloads import LINKED, LONGER
from tests.durability.subjects.clustered import CLUSTERED, SEGMENT
from tests.fsck.worlds import kinds

SAMPLE = 100
"""States of each workload in the ordinary run."""

ROOTS = {"/q", "/s"}
"""Without one of them the command says that there is no queue."""

TORN_BY_A_BYTE = "batch-byte"
"""Of a last batch all arrived but one byte, or a byte of it was changed since: nothing tells which, and it is put right.
Whether what was never answered is there or not is all the same."""

REPAIRED_EACH = 10
"""Of so many states one is repaired."""


def states_of(name: str, *, hardlinks: bool) -> list[Tree]:
    """Trees that crashes in this workload leave, each once."""
    world, _ = Explorer(hardlinks=hardlinks).run(LONGER[name])
    story = Story(world.disk.acts)
    count = sum(1 for system in FileSystem for _ in story.crashes(0, system))
    chosen = frozenset(random.Random(name).sample(range(count), min(SAMPLE, count)))
    crashes = enumerate(crash for system in FileSystem for crash in story.crashes(0, system))
    trees = [story.tree(crash) for number, crash in crashes if number in chosen]  # as they come: a story goes on
    return list({tree.digest: tree for tree in trees if set(tree.names.directories) >= ROOTS}.values())


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (segment, segments):
        monkeypatch.setattr(module, "SMALLEST", SEGMENT)


def look(tree: Tree, *, hardlinks: bool) -> list[Finding]:
    """What needs a repair."""
    found = CheckReport(checking_of(CLUSTERED.settings(hardlinks=hardlinks), TreeDisk(tree), LATER))
    return [finding for finding in found if finding.severity.needs_repair and finding.kind != TORN_BY_A_BYTE]


def repair(tree: Tree, *, hardlinks: bool) -> Tree:
    """What a repair makes of it; what it has set aside is taken away."""
    disk = TreeDisk(tree)
    settings = CLUSTERED.settings(hardlinks=hardlinks)
    found = list(RepairReport(settings, disk, random.Random(tree.digest).randbytes, LATER))
    assert [finding for finding in found if finding.severity is Severity.LOST or finding.error] == []
    assert kinds(CheckReport(checking_of(settings, disk, LATER))) == []
    for name in disk.list_directory("/q/corrupt"):
        disk.unlink(f"/q/corrupt/{name}")
    return Story(disk.acts, tree).tree(Crash(len(disk.acts)))


@pytest.mark.parametrize("name", LONGER)
def test_a_crash_never_looks_like_damage(name: str) -> None:
    for tree in states_of(name, hardlinks=False):
        assert look(tree, hardlinks=False) == []


@pytest.mark.parametrize("name", LINKED)
def test_a_crash_never_looks_like_damage_with_hard_links(name: str) -> None:
    for tree in states_of(name, hardlinks=True):
        assert look(tree, hardlinks=True) == []


@pytest.mark.parametrize("name", LONGER)
def test_a_repair_after_a_crash_finds_what_a_start_finds(name: str) -> None:
    for tree in states_of(name, hardlinks=False)[::REPAIRED_EACH]:
        if TORN_BY_A_BYTE in kinds(CheckReport(checking_of(CLUSTERED.settings(hardlinks=False), TreeDisk(tree), LATER))):
            continue
        wanted, found = (
            recover(tree, CLUSTERED, hardlinks=False),
            recover(repair(tree, hardlinks=False), CLUSTERED, hardlinks=False),
        )
        assert found.live == wanted.live
        assert found.contents == wanted.contents
