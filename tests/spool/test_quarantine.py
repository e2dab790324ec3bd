"""Setting aside: what has its name there is whole, whenever the machine stops, and durable when it is said to be."""

from __future__ import annotations

import errno

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.spool.quarantine import PIECE, UNFINISHED, quarantine_file, write_whole
from mailismus.spool.sweep import sweep_silo
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import moments
from tests.durability.crash.tree import Tree

CONTENT = b"x" * PIECE + b"y" * 5000


class OtherFileSystem(TreeDisk):
    """On which nothing can be linked from the first one."""

    def link(self, path: str, new_path: str) -> None:
        raise OSError(errno.EXDEV, "another file system")


class FasterReader(TreeDisk):
    """On which another one has linked the file a moment before."""

    def link(self, path: str, new_path: str) -> None:
        super().link(path, new_path)
        raise FileExistsError(errno.EEXIST, "it is there")


def made(disk: TreeDisk) -> None:
    disk.make_directory("/s")
    disk.make_directory("/c")
    file = disk.create("/s/a.msg")
    file.write_at(0, [CONTENT])


def is_whole(tree: Tree, path: str, content: bytes, *, must_be_there: bool) -> bool:
    """Whether what has this name, if anything, is all of it."""
    return tree.data_of(path) == content if path in tree.names.files else not must_be_there


def aside(disk: TreeDisk) -> bool:
    return quarantine_file(disk, "/s/a.msg", "/c")


def aside_as_copy(disk: TreeDisk) -> bool:
    disk.__class__ = OtherFileSystem
    return aside(disk)


@pytest.mark.parametrize("act", [aside, aside_as_copy], ids=["linked", "copied"])
def test_what_is_set_aside_is_whole_and_durable(act: object) -> None:
    assert callable(act)
    count = 0
    for tree, is_over in moments(made, act):
        assert is_whole(tree, "/c/a.msg", CONTENT, must_be_there=is_over)
        count += 1
    assert count > 3


def test_what_was_set_aside_by_one_who_was_killed_is_durable_too() -> None:
    def act(disk: TreeDisk) -> None:
        disk.link("/s/a.msg", "/c/a.msg")
        assert not aside(disk)

    for tree, is_over in moments(made, act):
        assert is_whole(tree, "/c/a.msg", CONTENT, must_be_there=is_over)


def test_what_another_reader_sets_aside_at_the_same_time_is_durable_and_no_trouble() -> None:
    def act(disk: TreeDisk) -> None:
        disk.__class__ = FasterReader
        assert not aside(disk)

    for tree, is_over in moments(made, act):
        assert is_whole(tree, "/c/a.msg", CONTENT, must_be_there=is_over)


def test_what_is_there_is_set_aside_once() -> None:
    disk = TreeDisk()
    made(disk)
    assert aside_as_copy(disk)
    assert not aside_as_copy(disk)
    assert disk.list_directory("/c") == ["a.msg"]


def test_half_a_copy_that_a_crash_left_is_made_anew() -> None:
    disk = TreeDisk()
    made(disk)
    disk.create("/c/a.msg" + UNFINISHED).write_at(0, [b"half"])
    assert aside_as_copy(disk)
    assert disk.list_directory("/c") == ["a.msg"]
    assert disk.open("/c/a.msg").read_at(0, PIECE * 2) == CONTENT


def test_a_file_that_is_kept_has_all_its_pieces_or_no_name() -> None:
    for tree, _ in moments(made, lambda disk: write_whole(disk, "/c/b", [b"one ", b"two"])):
        assert is_whole(tree, "/c/b", b"one two", must_be_there=False)


STRAY = "/s/05/0000000100000005.msg"


def with_a_stray(disk: TreeDisk) -> None:
    for path in ("/s", "/s/05", "/c"):
        disk.make_directory(path)
    disk.create(STRAY).write_at(0, [CONTENT])


@pytest.mark.parametrize("kind", [TreeDisk, OtherFileSystem], ids=["linked", "copied"])
def test_a_stray_is_whole_in_one_place_or_the_other(kind: type[TreeDisk]) -> None:
    def act(disk: TreeDisk) -> None:
        disk.__class__ = kind
        assert sweep_silo(disk, "/s", 5, SpoolId(1 << 40), lambda spool_id, number: False, "/c") == 1

    for tree, _ in moments(with_a_stray, act):
        found = [tree.data_of(path) for path in (STRAY, "/c/0000000100000005.msg") if path in tree.names.files]
        assert found
        assert all(content == CONTENT for content in found)
