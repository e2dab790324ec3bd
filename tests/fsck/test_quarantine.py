"""Setting aside by a repair: a copy is whole and durable before anything is changed, whenever the machine stops."""

from __future__ import annotations

import pytest

from mailismus.queue.fsck.quarantine import Quarantine
from mailismus.spool.quarantine import UNFINISHED
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import Doing, behind_one_who_was_killed, moments
from tests.durability.crash.tree import Tree

SOURCE = "/q/incoming/a.mqc"
CONTENT = b"x" * 5000 + b"y" * 5000
WHOLE = b"from %b at 0\n" % SOURCE.encode() + CONTENT
PIECE = b"from %b at 4000\n" % SOURCE.encode() + CONTENT[4000:6000]


def bare(disk: TreeDisk) -> None:
    for path in ("/q", "/q/incoming", "/s"):
        disk.make_directory(path)
    disk.create(SOURCE).write_at(0, [CONTENT])


def with_corrupt(disk: TreeDisk) -> None:
    bare(disk)
    disk.make_directory("/q/corrupt")


def whole(disk: TreeDisk) -> None:
    Quarantine(disk, "/q", "/s", ".mqc").keep(SOURCE)


def piece(disk: TreeDisk) -> None:
    Quarantine(disk, "/q", "/s", ".mqc").keep(SOURCE, 4000, 2000)


def moved(disk: TreeDisk) -> None:
    Quarantine(disk, "/q", "/s", ".mqc").move(SOURCE)


def set_aside(tree: Tree) -> list[bytes]:
    """What lies in `corrupt/` under good names."""
    paths = [path for path in tree.names.files if path.startswith("/q/corrupt/") and not path.endswith(UNFINISHED)]
    return [tree.data_of(path) for path in paths]


@pytest.mark.parametrize("before", [bare, with_corrupt])
@pytest.mark.parametrize(("act", "copy"), [(whole, WHOLE), (piece, PIECE)], ids=["whole", "piece"])
@pytest.mark.parametrize("is_second", [False, True], ids=["first", "behind-one-who-was-killed"])
def test_a_copy_is_whole_and_durable(before: Doing, act: Doing, copy: bytes, is_second: bool) -> None:
    lengths = set()
    for tree, is_over in moments(before, behind_one_who_was_killed(act) if is_second else act):
        assert tree.data_of(SOURCE) == CONTENT
        assert set_aside(tree) in ([[copy]] if is_over else [[], [copy]])
        lengths.add(len(set_aside(tree)))
    assert lengths == {0, 1}


@pytest.mark.parametrize("before", [bare, with_corrupt])
def test_what_is_moved_aside_is_whole_here_or_there_and_the_move_durable(before: Doing) -> None:
    places = set()
    for tree, is_over in moments(before, moved):
        is_here = SOURCE in tree.names.files
        assert ([tree.data_of(SOURCE)] if is_here else []) + set_aside(tree) == [CONTENT]
        assert not (is_over and is_here)
        places.add(is_here)
    assert places == {False, True}


def test_what_was_copied_is_copied_once_and_other_bytes_beside_it() -> None:
    disk = TreeDisk()
    with_corrupt(disk)
    for _ in range(2):
        piece(disk)
    assert len(disk.list_directory("/q/corrupt")) == 1
    disk.open(SOURCE).write_at(0, [b"z"])
    for _ in range(2):
        whole(disk)
    disk.open(SOURCE).write_at(0, [b"w"])
    whole(disk)
    assert len(disk.list_directory("/q/corrupt")) == 3
