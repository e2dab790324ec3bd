"""The drop directory: a message in it is whole or not there, its modes are safe, and nothing in it harms the server."""

from __future__ import annotations

import fcntl
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mailismus.disk.file_system import sync_by
from mailismus.errors import StartError
from mailismus.sendmail import drop
from mailismus.sendmail.drop import drop_message
from mailismus.sendmail.drop_format import BadDrop
from mailismus.sendmail.places import DROP_MODE, check_drop, make_places, unreachable
from mailismus.sendmail.shelf import HALF_AGE_S, Shelf, WaitingDrop

MESSAGE = b"Subject: x\n\nbody \xff\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "sendmail"
    make_places(str(place))
    return place


def leave(root: Path, message: bytes = MESSAGE, to: tuple[bytes, ...] = (b"a@b", "ö@c".encode())) -> str:
    return drop_message(str(root), b"s@d", to, io.BytesIO(message), len(message))


def files(root: Path) -> list[str]:
    return sorted(os.listdir(root / "drop"))


def test_a_dropped_message_is_read_as_it_was_written(root: Path) -> None:
    name = leave(root)
    shelf = Shelf(str(root))
    assert [one.name for one in shelf.waiting(set())] == files(root) == [name]
    status = (root / "drop" / name).stat()
    assert stat.S_IMODE(status.st_mode) == 0o640
    assert status.st_gid == (root / "drop").stat().st_gid
    assert status.st_nlink == 1
    opened = shelf.open(name, 0)
    assert opened is not None
    assert (opened.uid, opened.drop.sender, opened.drop.recipients) == (os.getuid(), b"s@d", (b"a@b", "ö@c".encode()))
    pieces = []
    while piece := opened.read(5):
        pieces.append(piece)
    opened.close()
    assert b"".join(pieces) == MESSAGE
    shelf.remove(name)
    assert files(root) == []
    assert shelf.open(name, 0) is None
    shelf.remove(name)


def test_it_is_durable_before_it_counts_and_its_name_before_the_program_ends(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def noting(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*words: object, **named: object) -> object:
            done.append(name)
            return function(*words, **named)

        return call

    for name in ("fsync", "link", "unlink", "write"):
        monkeypatch.setattr(os, name, noting(name, getattr(os, name)))
    monkeypatch.setattr(drop, "sync_by", noting("syncfs", sync_by))
    leave(root)
    assert done[:1] == ["write"]
    assert [one for one in done if one != "write"] == ["fsync", "link", "syncfs", "unlink"]
    assert "write" not in done[done.index("fsync") :]


@pytest.mark.parametrize("call", ["write", "fsync", "link", "fchmod", "syncfs"])
def test_what_fails_leaves_nothing_and_is_told(root: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*words: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((drop, "sync_by", fail) if call == "syncfs" else (os, call, fail)))
    with pytest.raises(StartError, match="No space left") as caught:
        leave(root)
    assert caught.value.status == os.EX_TEMPFAIL
    assert files(root) == []


def test_a_damaged_or_cut_file_is_known_whatever_byte_it_is(root: Path) -> None:
    path = root / "drop" / leave(root, b"x\n")
    shelf, data = Shelf(str(root)), path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :])
        with pytest.raises(BadDrop):
            shelf.open(path.name, 0)
        path.write_bytes(data[:place])
        with pytest.raises(BadDrop):
            shelf.open(path.name, 0)
    path.write_bytes(data + b"x")
    with pytest.raises(BadDrop):
        shelf.open(path.name, 0)
    path.write_bytes(data)
    opened = shelf.open(path.name, len(data))
    assert opened is not None
    opened.close()
    with pytest.raises(BadDrop, match="are the limit"):
        shelf.open(path.name, len(data) - 1)


def test_a_file_that_is_cut_while_it_is_read_is_no_message(root: Path) -> None:
    name = leave(root, b"x" * 100_000)
    opened = Shelf(str(root)).open(name, 0)
    assert opened is not None
    opened.read(10)
    os.truncate(root / "drop" / name, 200)
    with pytest.raises(BadDrop, match="cut"):
        b"".join(iter(lambda: opened.read(200_000), b""))
    opened.close()


@pytest.mark.parametrize("kind", ["pipe", "link", "directory", "empty", "text"])
def test_what_users_leave_there_can_do_nothing(root: Path, kind: str) -> None:
    path = root / "drop" / "1"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(root / "drop" / leave(root))
        case "directory":
            path.mkdir()
        case "empty":
            path.touch()
        case "text":
            path.write_text("mailismus-drop 1 999999999 999999999999999\n")
    shelf = Shelf(str(root))
    with pytest.raises(BadDrop):
        shelf.open("1", 0)
    assert shelf.put_aside("1", "why").uid == os.getuid()
    assert "1" not in files(root)
    assert len(os.listdir(root / "aside")) == (kind != "directory")


def test_what_a_killed_program_left_is_put_aside_and_nothing_else(root: Path) -> None:
    directory = root / "drop"
    whole = leave(root)
    os.link(directory / whole, directory / ("." + whole))  # killed behind the link: the message counts
    for name in (".half", ".young", ".written"):
        (directory / name).write_bytes(b"mailismus-drop 1 ")
    now = (directory / ".half").stat().st_mtime
    os.utime(directory / ".young", (now + HALF_AGE_S, now + HALF_AGE_S))
    shelf = Shelf(str(root))
    with (directory / ".written").open("rb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        found = shelf.put_half_aside(now + HALF_AGE_S + 1)
    assert [one.name for one in found] == [".half"]
    assert set(files(root)) == {whole, "." + whole, ".young", ".written"}
    assert shelf.waiting(set()) == [WaitingDrop(whole, os.getuid())]
    assert shelf.waiting({whole}) == []
    shelf.remove(whole)
    assert set(files(root)) == {".young", ".written"}


@pytest.mark.parametrize(
    ("mode", "why"),
    [(0o2733, "sticky"), (0o1733, "set-group-id"), (0o3777, "listed"), (0o3773, "listed"), (0o777, "sticky")],
)
def test_unsafe_modes_are_refused_by_the_server_and_the_command(root: Path, mode: int, why: str) -> None:
    os.chmod(root / "drop", mode)
    for refuse in (lambda: make_places(str(root)), lambda: leave(root)):
        with pytest.raises(StartError, match=why) as caught:
            refuse()
        assert caught.value.status == os.EX_CONFIG
        assert f"chmod {DROP_MODE:o}" in caught.value.text
    assert files(root) == []


def test_a_drop_directory_that_is_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "drop").rename(tmp_path / "elsewhere")
    (root / "drop").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StartError, match="symbolic link"):
        make_places(str(root))
    with pytest.raises(StartError, match="symbolic link"):
        leave(root)


@pytest.mark.parametrize(("part", "mode", "command"), [("", 0o777, "chmod go-w"), ("aside", 0o755, "chmod 700")])
def test_the_other_directories_are_the_servers_alone(root: Path, part: str, mode: int, command: str) -> None:
    os.chmod(root / part, mode)
    with pytest.raises(StartError, match=command):
        make_places(str(root))


def test_without_a_directory_the_program_shall_try_again(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="when it starts") as caught:
        check_drop(str(tmp_path / "drop"))
    assert caught.value.status == os.EX_TEMPFAIL


def test_a_closed_directory_above_is_named(root: Path) -> None:
    os.chmod(root.parent, 0o700)
    closed = unreachable(str(root))
    assert str(root).startswith(closed)
    assert closed
