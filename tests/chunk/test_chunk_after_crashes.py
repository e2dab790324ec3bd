"""A crash never looks like damage: a check of whatever a crash leaves finds nothing that needs a repair."""

from __future__ import annotations

import pytest

from mailismus.queue.fsck.finding import Severity
from mailismus.queue.providers.chunk.fsck.check import checking_of, report_of
from tests.chunk.harness import chunk_settings
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.explorer import Explorer
from tests.durability.crash.states import FileSystem, Story
from tests.durability.subjects.chunk import CHUNK

WORKLOADS = (
    ("store three", "preprocess", "deliver"),
    ("store three", "report"),
    ("store", "retry", "bounce", "restart"),
    ("give a number again",),
    ("fail a name in todo",),
    ("store three", "retry until it is written anew"),
)


@pytest.mark.parametrize("names", WORKLOADS, ids=" ".join)
def test_a_crash_never_looks_like_damage(names: tuple[str, ...]) -> None:
    world, _ = Explorer(CHUNK).run(names)
    acts = world.disk.acts
    seen: set[bytes] = set()
    story = Story(acts)
    begun = next(at for at, act in enumerate(acts) if act.path.startswith("/q/ids/"))
    for crash in story.crashes(begun, FileSystem.POSIX):
        tree = story.tree(crash)
        if tree.digest in seen:
            continue
        seen.add(tree.digest)
        report = report_of(checking_of(chunk_settings(), TreeDisk(tree), 1_700_000_000.0))
        worse = [finding for finding in report if finding.severity not in (Severity.NOTE, Severity.HARMLESS)]
        assert worse == [], crash
    assert len(seen) > 20
