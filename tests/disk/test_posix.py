"""The door to the real file system: what it writes is there, what is unsafe is refused."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from mailismus.disk.posix import Access, PosixDisk


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory of ours alone, under parents that nobody else can write."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return home


def test_buffers_are_written_one_behind_the_other_at_their_place(home: Path) -> None:
    file = PosixDisk().create(str(home / "f"))
    file.write_at(3, [b"abc", b"", b"def"])
    file.sync()
    file.close()
    file.close()
    assert (home / "f").read_bytes() == b"\0\0\0abcdef"
    assert (home / "f").stat().st_mode & 0o777 == 0o600


def test_more_buffers_than_one_call_takes_are_all_written(home: Path) -> None:
    buffers = [b"%05d" % n for n in range(2500)]
    file = PosixDisk().create(str(home / "f"))
    file.write_at(0, buffers)
    assert file.read_at(0, 100_000) == b"".join(buffers)
    assert file.size() == 12_500


def test_a_short_write_is_continued(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, offset: real(fd, [b"".join(parts)[:4]], offset))
    file = PosixDisk().create(str(home / "f"))
    file.write_at(0, [b"abc", b"defgh", b"ij"])
    assert file.read_at(0, 100) == b"abcdefghij"


def test_reading_behind_the_end_gives_what_there_is(home: Path) -> None:
    file = PosixDisk().create(str(home / "f"))
    file.write_at(0, [b"abc"])
    assert file.read_at(1, 100) == b"bc"
    assert file.read_at(9, 100) == b""


def test_a_name_that_is_taken_is_not_created_anew(home: Path) -> None:
    (home / "f").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        PosixDisk().create(str(home / "f"))


def test_no_file_is_opened_through_a_symbolic_link(home: Path) -> None:
    (home / "target").write_bytes(b"x")
    (home / "link").symlink_to(home / "target")
    with pytest.raises(OSError, match="symbolic"):
        PosixDisk().open(str(home / "link"))
    with pytest.raises(OSError, match="symbolic"):
        PosixDisk().lock(str(home / "link"))


def test_who_only_looks_can_not_write(home: Path) -> None:
    (home / "f").write_bytes(b"abc")
    file = PosixDisk(Access.READ_ONLY).open(str(home / "f"))
    assert file.read_at(0, 3) == b"abc"
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write_at(0, [b"x"])


def test_a_lock_is_held_by_one_and_given_up_by_release(home: Path) -> None:
    disk = PosixDisk()
    first = disk.lock(str(home / "lock"))
    assert first is not None
    assert disk.lock(str(home / "lock")) is None
    first.release()
    assert disk.lock(str(home / "lock")) is not None


def test_directories_names_and_space(home: Path) -> None:
    disk = PosixDisk()
    path = str(home / "d")
    disk.make_directory(path)
    assert os.stat(path).st_mode & 0o777 == 0o700
    disk.create(f"{path}/a").close()
    disk.rename(f"{path}/a", f"{path}/b")
    disk.sync_directory(path)
    assert disk.list_directory(path) == ["b"]
    assert disk.exists(f"{path}/b")
    with pytest.raises(OSError, match="not empty"):
        disk.remove_directory(path)
    disk.unlink(f"{path}/b")
    assert not disk.exists(f"{path}/b")
    space = disk.space(path)
    assert 0 < space.free_bytes <= space.size_bytes
    disk.remove_directory(path)
    assert not disk.exists(path)


def test_a_directory_of_ours_alone_is_safe(home: Path) -> None:
    assert PosixDisk().refuse_unsafe(str(home)) is None


def test_a_directory_open_to_others_is_refused_with_the_command_that_mends_it(home: Path) -> None:
    home.chmod(0o755)
    reason = PosixDisk().refuse_unsafe(str(home))
    assert reason is not None
    assert reason.endswith(f"chmod 700 {home}")


def test_a_symbolic_link_in_place_of_a_directory_is_refused(home: Path) -> None:
    (home / "link").symlink_to("/tmp")
    assert "symbolic link" in str(PosixDisk().refuse_unsafe(str(home / "link")))


def test_a_file_in_place_of_a_directory_is_refused(home: Path) -> None:
    (home / "f").write_bytes(b"")
    assert "not a directory" in str(PosixDisk().refuse_unsafe(str(home / "f")))


def test_a_parent_that_others_can_write_is_refused_unless_it_is_sticky(home: Path) -> None:
    ours = home / "ours"
    ours.mkdir(mode=0o700)
    home.chmod(0o777)
    assert f"chmod go-w {home}" in str(PosixDisk().refuse_unsafe(str(ours)))
    home.chmod(0o1777)
    assert PosixDisk().refuse_unsafe(str(ours)) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(home: Path) -> None:
    os.chown(home, 12345, 12345)
    assert f"chown -R 0 {home}" in str(PosixDisk().refuse_unsafe(str(home)))


def test_whether_a_name_is_taken_is_not_guessed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = PosixDisk()
    (home / "file").write_bytes(b"")
    assert disk.exists(str(home / "file"))
    assert not disk.exists(str(home / "none"))
    assert not disk.exists(str(home / "file" / "below"))

    def fail(path: str) -> os.stat_result:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "lstat", fail)
    with pytest.raises(OSError, match="Input/output error"):
        disk.exists(str(home / "file"))


def test_a_write_that_comes_no_further_fails(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = PosixDisk().create(str(home / "file"))
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, offset: 1)
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: 0)
    with pytest.raises(OSError, match="nothing more is written"):
        file.write_at(0, [b"hello"])


def test_names_below_an_open_directory_stay_in_it(home: Path) -> None:
    disk = PosixDisk()
    directory = disk.open_directory(str(home))
    directory.make_directory("below")
    file = directory.create("f")
    file.write_at(0, [b"abc"])
    assert sorted(directory.names()) == ["below", "f"]
    assert directory.inode_numbers()["f"] == directory.describe("f").inode[1]
    assert directory.describe("f").inode == file.describe().inode
    assert directory.open("f").read_at(0, 9) == b"abc"
    below = directory.open_directory("below")
    home.rename(home.parent / "moved")
    directory.link("f", below, "g")
    assert file.describe().links == 2
    directory.unlink("f")
    below.sync()
    directory.sync()
    assert (home.parent / "moved/below/g").read_bytes() == b"abc"
    for name in ("", ".", "..", "a/b", "a\0b"):
        with pytest.raises(OSError, match="not a name"):
            directory.describe(name)
    below.close()
    directory.close()
    directory.close()


def test_all_of_a_file_is_read_in_a_time_that_grows_as_it_does(home: Path) -> None:
    directory = PosixDisk().open_directory(str(home))
    for size in (0, 1, 8191, 8192, 8193, 100_000):
        data = bytes(at * 7 % 251 for at in range(size))
        (home / "file").write_bytes(data)
        assert directory.read("file") == data
    with open(home / "long", "wb") as file:
        file.truncate(40 << 20)  # the longest envelope: 34 ms; 74 s where each piece copies those before
    began = time.process_time()
    assert len(directory.read("long")) == 40 << 20
    assert time.process_time() - began < 5
    directory.close()


def test_no_link_is_followed_below_an_open_directory(home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / "link").symlink_to(home / "elsewhere")
    (home / "file").symlink_to(home / "elsewhere/file")
    directory = PosixDisk().open_directory(str(home))
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        directory.open_directory("link")
    with pytest.raises(OSError, match="Too many levels"):
        directory.open("file")
    with pytest.raises(FileExistsError):
        directory.create("file")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        PosixDisk().open_directory(str(home / "link"))
    PosixDisk().open_directory(str(home / "link"), may_be_link=True).close()
    directory.close()


def test_a_directory_that_may_only_be_searched_can_be_worked_in(home: Path) -> None:
    directory = PosixDisk().open_directory(str(home))
    (home / "f").write_bytes(b"x")
    home.chmod(0o300)
    assert PosixDisk().open_directory(str(home)).describe("f").size_bytes == 1
    home.chmod(0o700)
    directory.close()


def test_a_line_is_appended_to_what_is_there_and_a_rename_replaces(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = PosixDisk().open_directory(str(home))
    directory.make_directory("below")
    below = directory.open_directory("below")
    (home / "lines").write_bytes(b"1\n")
    directory.append("lines", b"2\n")
    directory.append("lines", b"3\n")
    assert (home / "lines").read_bytes() == b"1\n2\n3\n"
    with pytest.raises(FileNotFoundError):
        directory.append("none", b"1\n")
    (home / "link").symlink_to(home / "lines")
    with pytest.raises(OSError, match="Too many levels"):
        directory.append("link", b"4\n")
    (home / "below" / "taken").write_bytes(b"old")
    directory.rename("lines", below, "taken")
    assert (home / "below" / "taken").read_bytes() == b"1\n2\n3\n"
    assert not (home / "lines").exists()
    monkeypatch.setattr("os.write", lambda fd, data: 1)
    with pytest.raises(OSError, match="in part"):
        below.append("taken", b"5\n")
    below.close()
    directory.close()


def test_a_rename_that_replaces_nothing(home: Path) -> None:
    disk = PosixDisk()
    directory = disk.open_directory(str(home))
    (home / "a").write_bytes(b"a")
    (home / "b").write_bytes(b"b")
    with pytest.raises(FileExistsError):
        directory.rename_new("a", directory, "b")
    with pytest.raises(FileExistsError):
        disk.rename_new(str(home / "a"), str(home / "b"))
    directory.rename_new("a", directory, "c")
    disk.rename_new(str(home / "b"), str(home / "d"))
    assert sorted(os.listdir(home)) == ["c", "d"]
    assert (home / "c").read_bytes() == b"a"
    with pytest.raises(FileNotFoundError):
        disk.rename_new(str(home / "b"), str(home / "e"))


def test_shared_locks_exclude_those_for_one_alone(home: Path) -> None:
    disk, path = PosixDisk(), str(home / "lock")
    first, second = disk.lock(path, is_shared=True), disk.lock(path, is_shared=True)
    assert first is not None
    assert second is not None
    assert disk.lock(path) is None
    first.release()
    assert disk.lock(path) is None
    second.release()
    alone = disk.lock(path)
    assert alone is not None
    assert disk.lock(path, is_shared=True) is None


def test_an_open_file_is_locked_until_it_is_closed(home: Path) -> None:
    disk = PosixDisk()
    file = disk.create(str(home / "f"))
    other = disk.open(str(home / "f"))
    assert file.lock()
    assert file.lock()
    assert not other.lock()
    file.close()
    assert other.lock()
    facts = other.describe()
    assert (facts.links, facts.size_bytes) == (1, 0)
    assert facts.changed_at == pytest.approx(facts.changed_at, abs=1)
    (home / "f").unlink()
    assert other.describe().links == 0
