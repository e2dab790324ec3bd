"""The shell's history in its file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mailismus.admin.commands.history import MAX_LINE_BYTES, MAX_LINES, ShellHistory, history_path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "mailismus" / "history"


def typed(file: Path, *lines: str) -> None:
    history = ShellHistory(str(file))
    history.load()
    for line in lines:
        history.add(line)


def test_what_is_added_is_loaded_the_next_time(file: Path) -> None:
    assert ShellHistory(str(file)).load() == []
    typed(file, "list", "count 'reply=\udcff'")
    assert ShellHistory(str(file)).load() == ["list", "count 'reply=\udcff'"]


def test_the_file_is_private_and_so_is_what_was_made_for_it(file: Path) -> None:
    old = os.umask(0)
    try:
        typed(file, "list")
    finally:
        os.umask(old)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    file.chmod(0o644)
    typed(file, "count")
    assert file.stat().st_mode & 0o777 == 0o600


def test_blanks_repetitions_hidden_and_endless_lines_are_not_kept(file: Path) -> None:
    typed(file, "list", "list", "", "  ", " secret", "x" * (MAX_LINE_BYTES + 1), "two\nlines", "count", "list")
    typed(file, "list", "count")
    assert ShellHistory(str(file)).load() == ["list", "count", "list", "count"]


def test_it_is_bounded(file: Path) -> None:
    typed(file, *(f"list {number}" for number in range(3 * MAX_LINES)))
    assert ShellHistory(str(file)).load() == [f"list {number}" for number in range(2 * MAX_LINES, 3 * MAX_LINES)]
    assert file.read_text().count("\n") == MAX_LINES
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(file.parent) == ["history"]


def test_a_file_that_can_not_be_cut_is_read_all_the_same(file: Path) -> None:
    typed(file, *(f"list {number}" for number in range(3 * MAX_LINES)))
    (file.parent / f"history.{os.getpid()}").mkdir()
    assert ShellHistory(str(file)).load()[-1] == f"list {3 * MAX_LINES - 1}"
    assert file.read_text().count("\n") == 3 * MAX_LINES


def test_what_a_crash_left_of_cutting_is_no_obstacle(file: Path) -> None:
    typed(file, *(f"list {number}" for number in range(3 * MAX_LINES)))
    (file.parent / f"history.{os.getpid()}").write_text("half a li")
    assert len(ShellHistory(str(file)).load()) == MAX_LINES
    assert os.listdir(file.parent) == ["history"]
    assert file.read_text().count("\n") == MAX_LINES


def test_a_huge_file_is_not_read_whole_and_is_cut(file: Path) -> None:
    typed(file, "list")
    with file.open("r+b") as stream:
        stream.truncate(10**9)
        stream.seek(10**9)
        stream.write(b"\ncount\n")
    assert ShellHistory(str(file)).load() == ["count"]
    assert file.read_text() == "count\n"


def test_two_shells_lose_nothing_of_each_other(file: Path) -> None:
    one, other = ShellHistory(str(file)), ShellHistory(str(file))
    one.add("list")
    other.add("count")
    one.add("flush")
    assert ShellHistory(str(file)).load() == ["list", "count", "flush"]


@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_what_is_no_plain_file_is_left_alone(file: Path, tmp_path: Path, kind: str) -> None:
    file.parent.mkdir(parents=True)
    target = tmp_path / "precious"
    target.write_text("precious\n")
    if kind == "link":
        file.symlink_to(target)
    elif kind == "directory":
        file.mkdir()
    else:
        os.mkfifo(file)
    typed(file, "list")
    assert ShellHistory(str(file)).load() == []
    assert target.read_text() == "precious\n"


def test_a_file_of_another_user_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(file, "list")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    typed(file, "count")
    assert ShellHistory(str(file)).load() == []
    assert file.read_text() == "list\n"


def test_no_place_for_it_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    typed(tmp_path / "state" / "mailismus" / "history", "list")


def test_where_it_lies() -> None:
    assert history_path({"HOME": "/home/joe"}) == "/home/joe/.local/state/mailismus/history"
    assert history_path({"HOME": "/home/joe", "XDG_STATE_HOME": "/s"}) == "/s/mailismus/history"
    assert history_path({"HOME": "/home/joe", "XDG_STATE_HOME": "s"}) == "/home/joe/.local/state/mailismus/history"
    assert history_path({"HOME": ""}) is None
    assert history_path({}) is None
