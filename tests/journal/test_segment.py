"""Making a segment: bytes, length and name are durable before anybody gets it."""

from __future__ import annotations

from mailismus.journal.segment import make_segment
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import moments

SIZE = 3 * 4096


def made(disk: TreeDisk) -> None:
    disk.make_directory("/j")


def test_a_segment_is_durable_when_it_is_made() -> None:
    trees = list(moments(made, lambda disk: make_segment(disk, "/j", "ready-0.mqj", SIZE)))
    over = [tree for tree, is_over in trees if is_over]
    assert len(trees) > len(over) > 0
    for tree in over:
        assert tree.data_of("/j/ready-0.mqj") == bytes(SIZE)
