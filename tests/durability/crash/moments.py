"""What a crash may leave of one act of the product, alone: for what promises to be whole, or durable when it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.states import Crash, FileSystem, Story
from tests.durability.crash.tree import Tree

Doing = Callable[[TreeDisk], object]


def moments(before: Doing, act: Doing) -> Iterator[tuple[Tree, bool]]:
    """Every tree that a crash may leave of `act` over what `before` made, all of which is durable; and whether it had
    returned."""
    yield from moments_over(made_by(before), act)


def made_by(doing: Doing) -> Tree:
    """What is there when it was done."""
    disk = TreeDisk()
    doing(disk)
    return Story(disk.acts).tree(Crash(len(disk.acts)))


def moments_over(base: Tree, act: Doing) -> Iterator[tuple[Tree, bool]]:
    """The same over this tree, all of which is durable."""
    disk = TreeDisk(base)
    act(disk)
    story = Story(disk.acts, base)
    for crash in story.crashes(0, FileSystem.POSIX):
        yield story.tree(crash), crash.length == len(disk.acts)


class _Forgetful(TreeDisk):
    """No name is durable here."""

    def sync_directory(self, path: str) -> None:
        pass


def behind_one_who_was_killed(act: Doing) -> Doing:
    """It is done over what somebody did who was killed before he synced any directory."""

    def both(disk: TreeDisk) -> None:
        disk.__class__ = _Forgetful
        act(disk)
        disk.__class__ = TreeDisk
        act(disk)

    return both
