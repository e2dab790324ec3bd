"""What a crash may leave: the rules that the explorer goes by."""

from __future__ import annotations

from collections.abc import Callable

from tests.durability.crash.acts import Act, Kind
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.states import Crash, FileSystem, Story, Torn
from tests.durability.crash.tree import Tree

POSIX, EXT4 = FileSystem.POSIX, FileSystem.EXT4


def story(do: Callable[[TreeDisk], None]) -> tuple[Story, int]:
    """What is done behind a disk with `/q/d` and `/s`, all durable; and how many acts came before."""
    disk = TreeDisk()
    for path in ("/q", "/q/d", "/s"):
        disk.make_directory(path)
        disk.sync_directory("/")
        disk.sync_directory("/q")
    first = len(disk.acts)
    do(disk)
    return Story(disk.acts), first


def trees(do: Callable[[TreeDisk], None], file_system: FileSystem = POSIX) -> list[Tree]:
    """What a crash at the end may leave."""
    told, _ = story(do)
    return [told.tree(crash) for crash in told.crashes(len(told.acts), file_system)]


def write(disk: TreeDisk, path: str, data: bytes = b"one") -> None:
    file = disk.create(path)
    file.write_at(0, [data])
    file.sync()


def test_a_name_is_durable_with_its_directory_alone() -> None:
    assert any("/q/d/a" not in tree.names.files for tree in trees(lambda disk: write(disk, "/q/d/a")))

    def with_directory(disk: TreeDisk) -> None:
        write(disk, "/q/d/a")
        disk.sync_directory("/q/d")

    assert all(tree.data_of("/q/d/a") == b"one" for tree in trees(with_directory))


def test_the_other_reading_saves_the_name_of_a_new_file_with_its_bytes() -> None:
    assert all(tree.data_of("/q/d/a") == b"one" for tree in trees(lambda disk: write(disk, "/q/d/a"), EXT4))


def test_bytes_that_are_not_synced_are_there_or_not_or_torn() -> None:
    def act(disk: TreeDisk) -> None:
        write(disk, "/q/d/a", b"----")
        disk.sync_directory("/q/d")
        disk.open("/q/d/a").write_at(2, [b"abcd"])

    found = {tree.data_of("/q/d/a") for tree in trees(act)}
    assert {b"----", b"--abcd", b"--a-", b"--ab", b"--abc", b"--a\0\0\0", b"--\0\0\0\0"} <= found


def test_of_a_long_write_the_first_block_may_be_what_is_missing() -> None:
    def act(disk: TreeDisk) -> None:
        disk.create("/q/d/a").write_at(0, [b"x" * 5000])
        disk.sync_directory("/q/d")

    assert bytes(4096) + b"x" * 904 in {tree.data_of("/q/d/a") for tree in trees(act)}


def test_what_a_failed_barrier_was_to_cover_is_never_sure_again() -> None:
    def act(disk: TreeDisk) -> None:
        write(disk, "/q/d/a", b"one")
        disk.sync_directory("/q/d")
        file = disk.open("/q/d/a")
        file.write_at(0, [b"two"])
        disk.fault = lambda act: OSError(5, "injected") if act.kind is Kind.SYNC else None
        try:
            file.sync()
        except OSError:
            disk.fault = None
        file.sync()

    assert {b"one", b"two"} <= {tree.data_of("/q/d/a") for tree in trees(act)}


def test_a_rename_that_is_lost_leaves_the_old_name() -> None:
    def act(disk: TreeDisk) -> None:
        write(disk, "/q/d/a")
        disk.sync_directory("/q/d")
        disk.rename("/q/d/a", "/q/d/b")
        disk.rename("/q/d/b", "/q/d/c")

    found = {tuple(tree.names.files) for tree in trees(act)}
    assert found == {("/q/d/a",), ("/q/d/b",), ("/q/d/c",)}


def test_a_directory_that_is_not_durable_takes_its_files_along() -> None:
    def act(disk: TreeDisk) -> None:
        disk.make_directory("/q/d/e")
        write(disk, "/q/d/e/a")
        disk.sync_directory("/q/d/e")

    found = trees(act)
    assert any(not tree.names.files for tree in found)
    assert any("/q/d/e/a" in tree.names.files for tree in found)


def test_a_name_that_is_gone_comes_back_until_that_is_durable() -> None:
    def act(disk: TreeDisk) -> None:
        write(disk, "/q/d/a")
        disk.sync_directory("/q/d")
        disk.unlink("/q/d/a")

    assert any("/q/d/a" in tree.names.files for tree in trees(act))

    def and_sync(disk: TreeDisk) -> None:
        act(disk)
        disk.sync_directory("/q/d")

    assert not any("/q/d/a" in tree.names.files for tree in trees(and_sync))


def test_a_barrier_over_one_file_system_says_nothing_of_another() -> None:
    def act(disk: TreeDisk) -> None:
        for path in ("/q/d/a", "/s/a"):
            disk.create(path).write_at(0, [b"one"])
        disk.sync_file_system("/q")

    found = trees(act)
    assert all(tree.data_of("/q/d/a") == b"one" for tree in found)
    assert any("/s/a" not in tree.names.files for tree in found)


def test_a_kill_loses_nothing() -> None:
    told, first = story(lambda disk: write(disk, "/q/d/a"))
    assert first < len(told.acts)
    assert told.tree(Crash(len(told.acts))).data_of("/q/d/a") == b"one"
    assert told.tree(Crash(first)).names.files == {}


def test_two_names_of_a_file_are_told_from_two_files() -> None:
    def linked(disk: TreeDisk) -> None:
        write(disk, "/q/d/a")
        disk.link("/q/d/a", "/q/d/b")

    def copied(disk: TreeDisk) -> None:
        write(disk, "/q/d/a")
        write(disk, "/q/d/b")

    one, two = (told.tree(Crash(len(told.acts))) for told, _ in (story(linked), story(copied)))
    assert one.digest != two.digest


def test_the_same_tree_by_another_way_is_the_same() -> None:
    def one_by_one(disk: TreeDisk) -> None:
        file = disk.create("/q/d/a")
        file.write_at(0, [b"on"])
        file.write_at(2, [b"e"])

    one, two = (told.tree(Crash(len(told.acts))) for told, _ in (story(one_by_one), story(lambda d: write(d, "/q/d/a"))))
    assert one.digest == two.digest


def test_a_disk_over_a_tree_leaves_the_tree_as_it_is() -> None:
    told, _ = story(lambda disk: write(disk, "/q/d/a"))
    tree = told.tree(Crash(len(told.acts)))
    disk = TreeDisk(tree)
    disk.open("/q/d/a").write_at(0, [b"two"])
    disk.unlink("/q/d/a")
    assert tree.data_of("/q/d/a") == b"one"
    assert Story(disk.acts, tree).tree(Crash(1)).data_of("/q/d/a") == b"two"
    assert Story(disk.acts, tree).all_lost().data_of("/q/d/a") == b"one"
    torn = Torn(0, 0, 1, is_zero_filled=False)
    assert Story(disk.acts, tree).tree(Crash(1, torn=torn)).data_of("/q/d/a") == b"tne"


def test_an_act_says_what_it_is() -> None:
    assert str(Act(Kind.RENAME, "/q/a", 1, to="/q/b")) == "rename /q/a -> /q/b"


def number_of(tree: Tree, path: str) -> int:
    return TreeDisk(tree).describe(path).inode[1]


def test_files_keep_their_numbers_over_a_crash_and_a_number_that_is_free_is_the_next_files() -> None:
    disk = TreeDisk()
    disk.make_directory("/q")
    for name in ("a", "b", "c"):
        disk.create(f"/q/{name}").close()
    first, second, third = (disk.describe(f"/q/{name}").inode[1] for name in ("a", "b", "c"))
    disk.unlink("/q/a")
    story = Story(disk.acts)
    tree = story.tree(Crash(len(disk.acts)))
    assert (number_of(tree, "/q/b"), number_of(tree, "/q/c")) == (second, third)
    again = TreeDisk(tree)
    again.create("/q/d").close()
    assert again.describe("/q/d").inode[1] == first
    lost_b = story.tree(Crash(len(disk.acts), frozenset(at for at, act in enumerate(disk.acts) if act.path == "/q/b")))
    assert number_of(lost_b, "/q/c") == third


def test_where_a_number_was_given_again_the_rename_that_freed_it_is_there() -> None:
    disk = TreeDisk()
    for name in ("/q", "/q/d"):
        disk.make_directory(name)
    for path in ("/q/d/old", "/q/new"):
        disk.create(path).close()
    old, new = (disk.describe(path).inode[1] for path in ("/q/d/old", "/q/new"))
    for name in ("/", "/q", "/q/d"):
        disk.sync_directory(name)
    first = len(disk.acts)
    disk.rename("/q/new", "/q/d/old")
    disk.create("/q/later").close()
    assert disk.describe("/q/later").inode[1] == old
    story, found = Story(disk.acts), set()
    for crash in story.crashes(first, FileSystem.POSIX):
        tree = story.tree(crash)
        found.add(("/q/later" in tree.names.files, number_of(tree, "/q/d/old")))
    assert found == {(False, old), (False, new), (True, new)}


def test_a_number_that_was_given_again_is_never_that_of_two_files() -> None:
    disk = TreeDisk()
    disk.make_directory("/q")
    disk.create("/q/a").close()
    disk.sync_directory("/q")
    number = disk.describe("/q/a").inode[1]
    disk.unlink("/q/a")
    disk.create("/q/b").close()
    assert disk.describe("/q/b").inode[1] == number
    story, found = Story(disk.acts), set()
    for crash in story.crashes(0, FileSystem.POSIX):
        tree = story.tree(crash)
        files = TreeDisk(tree).paths(("/a", "/b", "a", "b")) if tree.names.files else []
        assert len(files) <= 1
        found.update(files)
    assert found == {"/q/a", "/q/b"}
