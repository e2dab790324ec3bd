"""Delivery into a maildir: the six steps, and what is left when one of them fails."""

from __future__ import annotations

import errno
import os
import pathlib
import stat
import time

import pytest

from mailismus.chunks.access import NoFreeName
from mailismus.chunks.generator import NameGenerator
from mailismus.chunks.names import PartStrategy
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import PosixDisk
from mailismus.maildir.delivery import begin_delivery
from mailismus.maildir.store import SUBDIRECTORIES, MaildirStore
from mailismus.maildir.sweep import LIMIT, Sweeper, sweep
from tests.durability.crash.acts import Kind
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.states import FileSystem, Story
from tests.fakes.disk import MemoryDisk

NOW = 1_700_000_000.25
PATH = "/home/ms"


def store_of(disk: IDisk, host: bytes = b"mx.example") -> MaildirStore:
    return MaildirStore(disk, PartStrategy("MPQ", host), NameGenerator(lambda: 42))


def deliver(
    root: pathlib.Path, content: bytes = b"Hello\r\n", user: bytes = b"joe", store: MaildirStore | None = None
) -> None:
    deliver_by(store or store_of(PosixDisk()), str(root), content, user)


def deliver_by(store: MaildirStore, root: str = PATH, content: bytes = b"Hello\r\n", user: bytes = b"joe") -> None:
    delivery = begin_delivery(store, root, user, "Maildir", NOW, b"Head: x\n")
    try:
        delivery.write(content)
        delivery.finish()
    finally:
        delivery.abandon()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_message_lies_in_new_and_nowhere_else(tmp_path: pathlib.Path) -> None:
    deliver(tmp_path / "ms")
    maildir = tmp_path / "ms" / "joe" / "Maildir"
    (path,) = (maildir / "new").iterdir()
    assert path.read_bytes() == b"Head: x\nHello\n"
    assert path.name == "1700000000.M250000P42Q1.mx.example,S=14"
    assert list((maildir / "tmp").iterdir()) == []
    assert (maildir / "cur").is_dir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for directory in (tmp_path / "ms", tmp_path / "ms" / "joe", maildir, maildir / "new", maildir / "tmp"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_everything_is_synced_before_it_counts() -> None:
    disk = MemoryDisk()
    store = store_of(disk)
    deliver_by(store)
    disk.acts.clear()
    deliver_by(store)
    changes = [act for act in disk.acts if act[0] not in ("describe", "open directory")]
    new, tmp = f"{PATH}/joe/Maildir/new", f"{PATH}/joe/Maildir/tmp"
    name = "1700000000.M250000P42Q2.mx.example"
    assert changes == [
        ("create", f"{tmp}/{name}"),
        *[("write", f"{tmp}/{name}")] * 2,
        ("sync", f"{tmp}/{name}"),
        ("link", f"{new}/{name},S=14"),
        ("sync directory", new),
        ("unlink", f"{tmp}/{name}"),
    ]


def test_directories_are_durable_before_the_first_delivery_of_a_process_whoever_made_them() -> None:
    disk = MemoryDisk()
    deliver_by(store_of(disk))
    disk.acts.clear()
    deliver_by(store_of(disk, b"other"))
    synced = [path for act, path in disk.acts if act == "sync directory"]
    assert synced == ["/home", PATH, f"{PATH}/joe", f"{PATH}/joe/Maildir", f"{PATH}/joe/Maildir/new"]


def test_all_directories_of_a_new_user_are_made_before_the_first_of_them_is_synced() -> None:
    """A file system with a journal writes it once for all of them."""
    disk = MemoryDisk()
    store = store_of(disk)
    deliver_by(store)
    disk.acts.clear()
    store.open(PATH, b"ann", "Maildir").close()
    maildir = f"{PATH}/ann/Maildir"
    assert [act for act in disk.acts if act[0] in ("mkdir", "sync directory")] == [
        *[("mkdir", path) for path in (f"{PATH}/ann", maildir, *[f"{maildir}/{one}" for one in SUBDIRECTORIES])],
        *[("sync directory", path) for path in (PATH, f"{PATH}/ann", maildir)],
    ]


def test_the_file_of_a_first_delivery_is_synced_before_its_directories_and_these_before_it_counts() -> None:
    """A file system with a journal writes all of them with the file."""
    disk = MemoryDisk()
    store = store_of(disk)
    deliver_by(store)
    disk.acts.clear()
    deliver_by(store, user=b"ann")
    acts = [act for act, _ in disk.acts if act in ("sync", "sync directory", "link")]
    assert acts == ["sync", *["sync directory"] * 3, "link", "sync directory"]


def test_a_directory_of_maildirs_that_was_removed_is_made_and_synced_again() -> None:
    disk = MemoryDisk()
    store = store_of(disk)
    store.open(PATH, b"joe", "Maildir").close()
    disk.rename(PATH, "/home/old")
    disk.acts.clear()
    store.open(PATH, b"joe", "Maildir").close()
    synced = [path for act, path in disk.acts if act == "sync directory"]
    assert synced == ["/home", PATH, f"{PATH}/joe", f"{PATH}/joe/Maildir"]


@pytest.mark.parametrize("act", ["write", "sync", "link", "create", "sync directory"])
def test_trouble_leaves_nothing_behind(act: str) -> None:
    disk = MemoryDisk()
    store = store_of(disk)
    deliver_by(store)
    disk.fault = lambda one, path: OSError(errno.EIO, "EIO") if one == act else None
    with pytest.raises(OSError, match="EIO"):
        deliver_by(store)
    there = [path for path in disk.names if "/tmp/" in path]
    assert there == []
    assert sum("/new/" in path for path in disk.names) == (2 if act == "sync directory" else 1)


def test_no_descriptor_stays_open(tmp_path: pathlib.Path) -> None:
    store = store_of(PosixDisk())
    deliver(tmp_path, store=store)
    before = open_files()
    deliver(tmp_path, store=store)
    delivery = begin_delivery(store, str(tmp_path), b"joe", "Maildir", NOW, b"")
    delivery.abandon()
    delivery.abandon()
    assert open_files() == before
    assert list((tmp_path / "joe/Maildir/tmp").iterdir()) == []


def test_a_failed_close_fails_the_delivery(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = begin_delivery(store_of(PosixDisk()), str(tmp_path), b"joe", "Maildir", NOW, b"")
    real, failed = os.close, list[int]()

    def fail_once(fd: int) -> None:
        real(fd)
        if not failed:
            failed.append(fd)
            raise OSError(122, "EDQUOT")

    monkeypatch.setattr(os, "close", fail_once)
    with pytest.raises(OSError, match="EDQUOT"):
        delivery.finish()
    delivery.abandon()
    assert list((tmp_path / "joe/Maildir/new").iterdir()) == []
    assert list((tmp_path / "joe/Maildir/tmp").iterdir()) == []


def test_a_name_that_is_taken_is_passed_over_by_the_next_try(tmp_path: pathlib.Path) -> None:
    store = store_of(PosixDisk())
    store.open(str(tmp_path), b"joe", "Maildir").close()
    taken = tmp_path / "joe/Maildir/tmp/1700000000.M250000P42Q1.mx.example"
    taken.symlink_to(tmp_path / "elsewhere")
    before = open_files()
    with pytest.raises(NoFreeName):  # the caller waits for two seconds
        deliver(tmp_path, store=store)
    assert open_files() == before
    deliver(tmp_path, store=store)
    (path,) = (tmp_path / "joe/Maildir/new").iterdir()
    assert "Q2" in path.name
    assert not (tmp_path / "elsewhere").exists()


def test_a_name_of_which_nothing_can_be_found_out_is_not_used_either() -> None:
    disk = MemoryDisk()
    store = store_of(disk)
    deliver_by(store)
    disk.fault = lambda one, path: OSError(errno.EIO, "EIO") if one == "describe" and "/tmp/" in path else None
    with pytest.raises(NoFreeName) as found:
        deliver_by(store)
    assert found.value.errno == errno.EIO
    disk.fault = None
    deliver_by(store)
    assert sum("/new/" in path for path in disk.names) == 2


def test_the_time_of_a_file_is_that_of_its_delivery(tmp_path: pathlib.Path) -> None:
    before = time.time()
    deliver(tmp_path)
    (path,) = (tmp_path / "joe/Maildir/new").iterdir()
    assert before - 1 <= path.stat().st_mtime <= time.time() + 1


def test_a_delivery_that_finished_survives_a_power_cut_and_none_is_there_in_part() -> None:
    disk = TreeDisk()
    disk.make_directory("/q")  # one of its two file systems
    disk.sync_directory("/")
    deliver_by(store_of(disk), "/q/ms")
    disk.mark("delivered")
    whole, states = b"Head: x\nHello\n", 0
    for file_system in FileSystem:
        story = Story(disk.acts)
        for crash in story.crashes(1, file_system):
            tree = story.tree(crash)
            found = [tree.data_of(path) for path in tree.names.files if "/new/" in path]
            is_known = any(act.kind is Kind.MARK for act in disk.acts[: crash.length])
            states += 1
            assert found == [whole] or (found == [] and not is_known)
    assert states > 100


@pytest.mark.parametrize("user", [b"", b".", b"..", b"../joe", b"a/b", b"a\0b", b".hidden"])
def test_a_user_name_never_leaves_the_store(user: bytes, tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match="can have no maildir"):
        deliver(tmp_path, user=user)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("link", ["joe", "joe/Maildir", "joe/Maildir/tmp", "joe/Maildir/new"])
@pytest.mark.parametrize("is_first", [True, False])
def test_no_symbolic_link_below_userpath_is_followed(link: str, is_first: bool, tmp_path: pathlib.Path) -> None:
    root, elsewhere = tmp_path / "ms", tmp_path / "elsewhere"
    store = store_of(PosixDisk())
    deliver(root, store=store)
    (root / link).rename(elsewhere)
    (root / link).symlink_to(elsewhere)
    before, there = open_files(), sorted(elsewhere.rglob("*"))
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        deliver(root, store=store_of(PosixDisk()) if is_first else store)
    assert sorted(elsewhere.rglob("*")) == there
    assert open_files() == before


def test_a_link_that_dangles_is_not_followed_either(tmp_path: pathlib.Path) -> None:
    (tmp_path / "joe").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        deliver(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_userpath_itself_may_be_a_link(tmp_path: pathlib.Path) -> None:
    (tmp_path / "disk2").mkdir()
    (tmp_path / "ms").symlink_to(tmp_path / "disk2")
    deliver(tmp_path / "ms")
    assert len(list((tmp_path / "disk2/joe/Maildir/new").iterdir())) == 1


def test_the_sweep_takes_old_files_alone(tmp_path: pathlib.Path) -> None:
    store = store_of(PosixDisk())
    store.open(str(tmp_path), b"joe", "Maildir").close()
    maildir = tmp_path / "joe/Maildir"
    (maildir / "tmp/message").write_bytes(b"x")
    (maildir / "tmp/folder").mkdir()
    (maildir / "new/message").write_bytes(b"x")
    now = (maildir / "tmp/message").stat().st_ctime
    assert sweep(store, str(tmp_path), b"joe", "Maildir", now + 35 * 3600) == 0
    assert sweep(store, str(tmp_path), b"joe", "Maildir", now + 37 * 3600) == 1
    assert [path.name for path in (maildir / "tmp").iterdir()] == ["folder"]
    assert (maildir / "new/message").exists()
    assert LIMIT > 0


def test_a_maildir_is_swept_once_a_day() -> None:
    sweeper = Sweeper()
    assert sweeper.claim("a", NOW)
    assert not sweeper.claim("a", NOW + 3600)
    assert sweeper.claim("b", NOW + 3600)
    assert sweeper.claim("a", NOW + 25 * 3600)
    assert sweeper.claim("a", NOW - 3600)  # the clock was set back


def test_a_sweep_takes_regular_files_and_no_links(tmp_path: pathlib.Path) -> None:
    store = store_of(PosixDisk())
    store.open(str(tmp_path), b"joe", "Maildir").close()
    link = tmp_path / "joe/Maildir/tmp/link"
    link.symlink_to(tmp_path / "elsewhere")
    assert sweep(store, str(tmp_path), b"joe", "Maildir", link.lstat().st_ctime + 37 * 3600) == 0
    assert link.is_symlink()


def test_the_times_of_sweeps_are_bounded_and_the_newest_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.maildir.sweep.REMEMBERED", 2)
    sweeper = Sweeper()
    assert [sweeper.claim(name, 1.0) for name in ("a", "b", "a", "c", "c", "a")] == [True, True, False, True, False, True]
