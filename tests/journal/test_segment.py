"""Making a segment: bytes, length and name are durable before anybody gets it."""

from __future__ import annotations

import pytest

from mailismus.journal.replay import freed_number
from mailismus.journal.segment import free_name, make_segment
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


@pytest.mark.parametrize("number", [1, 12345678, 123456789])
def test_the_name_of_a_free_segment_tells_its_last_number(number: int) -> None:
    assert freed_number(f"/j/{free_name(number)}") == number


@pytest.mark.parametrize("name", ["ready-1.mqj", "ready-0000001.mqj", "ready-.mqj", "ready-00000001", "00000001.mqj"])
def test_other_names_tell_none(name: str) -> None:
    """A segment that was never used has a shorter one, with another number."""
    assert freed_number(f"/j/{name}") == 0
