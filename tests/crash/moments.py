"""What a crash may leave of one act of the product, alone: for what promises to be whole, or durable when it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.crash.disk import TreeDisk
from tests.crash.states import Crash, FileSystem, Story
from tests.crash.tree import Tree

Doing = Callable[[TreeDisk], object]


def moments(before: Doing, act: Doing) -> Iterator[tuple[Tree, bool]]:
    """Every tree that a crash may leave of `act` over what `before` made, all of which is durable; and whether it had
    returned."""
    disk = TreeDisk()
    before(disk)
    base = Story(disk.acts).tree(Crash(len(disk.acts)))
    disk = TreeDisk(base)
    act(disk)
    story = Story(disk.acts, base)
    for crash in story.crashes(0, FileSystem.POSIX):
        yield story.tree(crash), crash.length == len(disk.acts)
