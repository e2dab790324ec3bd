"""The configuration file, replaced whole: killed at each call, failing at each call, changed by another program."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mailismus.config.edit import replacement
from mailismus.config.edit.replacement import Changed, NotDurable, Replacement

OLD, NEW = b"<mailserver/>\n" * 50, b"<mailserver></mailserver>\n" * 70
MAX_BYTES = 1 << 20
CALLS = (
    *("open", "close", "fstat", "stat", "pread", "write", "fsync", "fchmod", "fchown", "rename", "unlink"),
    *("getxattr", "setxattr"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "m.xml"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


def replace(path: Path, data: bytes = NEW) -> None:
    one = Replacement(os.fspath(path))
    try:
        one.open(MAX_BYTES)
        one.replace(data)
    finally:
        one.close()


class Interposed:
    """The `os` of the module, whose calls are counted and may be something else."""

    def __init__(
        self, on_call: Callable[[int, str], None], after_call: Callable[[int, str], None] = lambda n, name: None
    ) -> None:
        self._on_call, self._after_call = on_call, after_call
        self.count = 0

    def __getattr__(self, name: str) -> Any:  # Any: stands for a module
        found = getattr(os, name)
        if name not in CALLS:
            return found

        def call(*args: object, **kw: object) -> object:
            number, self.count = self.count, self.count + 1
            self._on_call(number, name)
            try:
                return found(*args, **kw)
            finally:
                self._after_call(number, name)

        return call


def count_calls(monkeypatch: pytest.MonkeyPatch, file: Path) -> list[str]:
    names: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(replacement, "os", Interposed(lambda number, name: names.append(name)))
        replace(file)
    return names


def run_killed(act: Callable[[], None]) -> None:
    """In a process of its own, which kills itself."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_any_call_the_file_is_the_old_or_the_new_one(
    monkeypatch: pytest.MonkeyPatch, file: Path, moment: str
) -> None:
    total = len(count_calls(monkeypatch, file))
    assert total > 15
    found = set()
    for at in range(total):
        file.write_bytes(OLD)
        kept = file.with_name("m.xml~")
        kept.write_bytes(b"older\n")

        def kill(number: int, name: str, at: int = at) -> None:
            if number == at:
                os.kill(os.getpid(), signal.SIGKILL)

        def act(kill: Callable[[int, str], None] = kill) -> None:
            interposed = Interposed(kill) if moment == "before" else Interposed(lambda number, name: None, kill)
            monkeypatch.setattr(replacement, "os", interposed)
            replace(file)

        run_killed(act)
        found.add((file.read_bytes() == NEW, kept.read_bytes() == OLD))
        assert file.read_bytes() in (OLD, NEW)
        assert kept.read_bytes() in (b"older\n", OLD)
        assert file.read_bytes() == OLD or kept.read_bytes() == OLD
        # The next one is not hindered by what lies about, and removes it.
        replace(file, b"newer")
        assert (file.read_bytes(), sorted(os.listdir(file.parent))) == (b"newer", ["m.xml", "m.xml~"])
    assert found == {(False, False), (False, True), (True, True)}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_failing_at_any_call_the_file_is_as_it_was(monkeypatch: pytest.MonkeyPatch, file: Path, number: int) -> None:
    names = count_calls(monkeypatch, file)
    for at, name in enumerate(names):
        if name == "getxattr" or names[at:] == names[-1:]:
            continue  # a file system without access control lists; the lock is given back
        file.write_bytes(OLD)

        def fail(call: int, name: str, at: int = at) -> None:
            if call == at:
                raise OSError(number, os.strerror(number))

        is_late = at > len(names) - 1 - names[::-1].index("rename")
        with monkeypatch.context() as patch:
            patch.setattr(replacement, "os", Interposed(fail))
            with pytest.raises(NotDurable if is_late else OSError):
                replace(file)
        assert file.read_bytes() == (NEW if is_late else OLD)
        left = [found for found in os.listdir(file.parent) if found.startswith(".")]
        assert left == [] or name in ("unlink", "close"), (at, name)


def test_short_writes_are_continued(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:7]))
    replace(file)
    assert file.read_bytes() == NEW


def test_mode_and_owner_are_kept_and_the_former_text_has_them_too(file: Path) -> None:
    os.chmod(file, 0o640)
    if os.geteuid() == 0:
        os.chown(file, 12345, 54321)
    before = file.stat()
    replace(file)
    for path in (file, file.with_name("m.xml~")):
        found = path.stat()
        assert (found.st_mode, found.st_uid, found.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert file.with_name("m.xml~").read_bytes() == OLD


def test_what_is_being_written_is_open_to_nobody_else(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    os.chmod(file, 0o600)
    modes: list[int] = []

    def look(number: int, name: str) -> None:
        modes.extend(stat.S_IMODE(found.stat().st_mode) for found in file.parent.glob(".m.xml*"))

    monkeypatch.setattr(replacement, "os", Interposed(lambda number, name: None, look))
    replace(file)
    assert set(modes) == {0o600}


def test_symbolic_links_are_followed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    link = tmp_path / "etc" / "m.xml"
    link.symlink_to("../config/m.xml")
    replace(link)
    assert link.is_symlink()
    assert (file.read_bytes(), file.with_name("m.xml~").read_bytes()) == (NEW, OLD)
    assert os.listdir(tmp_path / "etc") == ["m.xml"]


def write_in_place(path: Path) -> None:
    path.write_bytes(b"of an editor")


def write_beside(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"of an editor")
    other.rename(path)


def write_the_same_size(path: Path) -> None:
    path.write_bytes(b"x" * len(OLD))


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [write_in_place, write_beside, write_the_same_size, remove])
def test_a_change_by_another_program_is_left_as_it_is(file: Path, change: Callable[[Path], None]) -> None:
    one = Replacement(os.fspath(file))
    one.open(MAX_BYTES)
    change(file)
    expected = file.read_bytes() if file.exists() else None
    with pytest.raises(Changed, match="was changed by another program meanwhile"):
        one.replace(NEW)
    one.close()
    assert (file.read_bytes() if file.exists() else None) == expected
    assert [name for name in os.listdir(file.parent) if name != "m.xml"] == []


def test_of_two_at_a_time_none_is_lost(file: Path) -> None:
    file.write_bytes(b"")

    def add(number: int) -> None:
        one = Replacement(os.fspath(file))
        one.open(MAX_BYTES)
        one.replace(one.data + b"%d\n" % number)
        one.close()

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(map(int, file.read_bytes().split())) == list(range(12))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_regular_file_is_opened(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "m.xml")
    with pytest.raises(OSError, match="not a regular file"):
        Replacement(os.fspath(tmp_path / "m.xml")).open(MAX_BYTES)
