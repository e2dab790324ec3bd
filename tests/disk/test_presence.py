"""Whether a name still leads to what was opened under it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from mailismus.disk.interface import INamed, NameStanding
from mailismus.disk.posix import PosixDisk
from mailismus.disk.presence import AnyDirectory, Missing, Presence

Open = Callable[[str], INamed]


def _file(path: str) -> INamed:
    return PosixDisk().create(path)


def _lock(path: str) -> INamed:
    lock = PosixDisk().lock(path)
    assert lock is not None
    return lock


def _directory(path: str) -> INamed:
    os.mkdir(path)
    return PosixDisk().open_directory(path)


@pytest.fixture(params=[_file, _lock, _directory])
def open_it(request: pytest.FixtureRequest) -> Iterator[Open]:
    opened: list[Any] = []

    def open_and_remember(path: str) -> INamed:
        opened.append(request.param(path))
        return cast(INamed, opened[-1])

    yield open_and_remember
    for one in opened:
        (one.release if hasattr(one, "release") else one.close)()


def remove(path: str) -> None:
    (os.rmdir if os.path.isdir(path) else os.unlink)(path)


def test_what_was_moved_away_has_its_name_again_when_it_is_moved_back(tmp_path: Path, open_it: Open) -> None:
    path = str(tmp_path / "x")
    opened = open_it(path)
    assert opened.standing(path) is NameStanding.NAMED
    os.rename(path, path + ".old")
    assert opened.standing(path) is NameStanding.MOVED
    os.rename(path + ".old", path)
    assert opened.standing(path) is NameStanding.NAMED


def test_what_was_moved_with_its_parent_is_moved(tmp_path: Path, open_it: Open) -> None:
    (tmp_path / "home").mkdir()
    path = str(tmp_path / "home" / "x")
    opened = open_it(path)
    (tmp_path / "home").rename(tmp_path / "other")
    assert opened.standing(path) is NameStanding.MOVED
    (tmp_path / "home").write_text("a file")
    assert opened.standing(path) is NameStanding.MOVED


def test_what_was_removed_is_not_taken_for_what_is_made_in_its_place(tmp_path: Path, open_it: Open) -> None:
    path = str(tmp_path / "x")
    opened = open_it(path)
    remove(path)
    assert opened.standing(path) is NameStanding.REMOVED
    for _ in range(3):  # a file system may give its inode out again, but not while it is open
        again = open_it(path)
        assert opened.standing(path) is NameStanding.REMOVED
        assert again.standing(path) is NameStanding.NAMED
        remove(path)


def test_what_another_name_leads_to_is_moved(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    opened = _file(path)
    os.link(path, path + "-2")
    os.unlink(path)
    assert opened.standing(path) is NameStanding.MOVED


def test_a_symbolic_link_in_its_place_is_not_it(tmp_path: Path, open_it: Open) -> None:
    path = str(tmp_path / "x")
    opened = open_it(path)
    os.rename(path, path + ".old")
    os.symlink(path + ".old", path)
    assert opened.standing(path) is NameStanding.MOVED


def test_an_open_directory_is_none_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="link"):
        PosixDisk().open_directory(str(tmp_path / "link"))


def test_a_directory_may_be_closed_twice(tmp_path: Path) -> None:
    directory = PosixDisk().open_directory(str(tmp_path))
    directory.close()
    directory.close()
    with pytest.raises(OSError, match="Bad file"):
        directory.standing(str(tmp_path))


def test_any_directory_will_do_where_it_is_only_written_to(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    there = AnyDirectory(PosixDisk())
    assert there.standing(path) is NameStanding.MOVED
    assert there.standing(path + "/y") is NameStanding.MOVED
    os.mkdir(path)
    assert there.standing(path) is NameStanding.NAMED
    os.rmdir(path)
    os.symlink(str(tmp_path), path)
    assert there.standing(path) is NameStanding.MOVED


def test_presence_names_the_first_that_is_missing_and_what_to_do(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("queue", "queue/journal", "queue/lock")]
    opened = {path: _directory(path) for path in names[:2]}
    presence = Presence(opened, {names[2]: _lock(names[2])})
    presence.check()
    os.unlink(names[2])
    with pytest.raises(Missing, match=r"queue/lock was removed: another server could .* stop this one, and start it again"):
        presence.check()
    os.rmdir(names[1])
    with pytest.raises(Missing, match=r"queue/journal was removed: what this server knows .* is nowhere else"):
        presence.check()
    os.rename(names[0], names[0] + ".old")
    with pytest.raises(Missing, match=r"queue was moved away, .* move it back") as found:
        presence.check()
    assert found.value.path == names[0]


def test_what_can_not_be_looked_at_counts_as_missing(tmp_path: Path) -> None:
    directory = PosixDisk().open_directory(str(tmp_path))
    directory.close()
    with pytest.raises(Missing, match="can't be looked at: Bad file descriptor"):
        Presence({str(tmp_path): directory}, {}).check()
