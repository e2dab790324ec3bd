"""Delivery into a maildir: the six steps, and what is left when one of them fails."""

from __future__ import annotations

import os
import pathlib
import re
import stat

import pytest

from mailismus.maildir.delivery import begin_delivery, open_maildir, write_all
from mailismus.maildir.names import NameSource
from mailismus.maildir.sweep import LIMIT, Sweeper, sweep

NOW = 1_700_000_000.25


def deliver(root: pathlib.Path, content: bytes = b"Hello\r\n", user: bytes = b"joe", host: bytes = b"mx.example") -> None:
    delivery = begin_delivery(str(root), user, "Maildir", NameSource(host, lambda: 42), NOW, b"Head: x\n")
    try:
        delivery.write(content)
        delivery.finish()
    finally:
        delivery.abandon()


def test_a_message_lies_in_new_and_nowhere_else(tmp_path: pathlib.Path) -> None:
    deliver(tmp_path / "ms")
    maildir = tmp_path / "ms" / "joe" / "Maildir"
    (path,) = (maildir / "new").iterdir()
    assert path.read_bytes() == b"Head: x\nHello\n"
    assert path.name == "1700000000.M250000P42Q1.mx.example"
    assert list((maildir / "tmp").iterdir()) == []
    assert (maildir / "cur").is_dir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for directory in (tmp_path / "ms", tmp_path / "ms" / "joe", maildir, maildir / "new", maildir / "tmp"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_names_differ_and_hold_no_slash_and_no_colon() -> None:
    names = NameSource(b"a/b:c\x00d", lambda: 1)
    made = [names.next_name(NOW) for _ in range(100)]
    assert len(set(made)) == 100
    assert all(re.fullmatch(r"\d+\.M\d{6}P1Q\d+\.a\\057b\\072c_d", name) for name in made)


def test_everything_is_synced_before_it_counts(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acts: list[str] = []

    def spy(name: str) -> None:
        real = getattr(os, name)

        def act(*arguments: object, **names: object) -> object:
            what = os.readlink(f"/proc/self/fd/{arguments[0]}") if name == "fsync" else ""
            acts.append(f"{name} {os.path.basename(what).split('.')[0]}".strip())
            return real(*arguments, **names)

        monkeypatch.setattr(os, name, act)

    deliver(tmp_path)
    for name in ("fsync", "link", "unlink"):
        spy(name)
    deliver(tmp_path, user=b"joe", host=b"other")
    assert acts == ["fsync 1700000000", "link", "fsync new", "unlink"]


@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_trouble_leaves_nothing_behind(call: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(tmp_path)
    before = len(os.listdir("/proc/self/fd"))

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "EIO")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="EIO"):
        deliver(tmp_path, host=b"other")
    monkeypatch.undo()
    assert len(list((tmp_path / "joe/Maildir/new").iterdir())) == 1
    assert list((tmp_path / "joe/Maildir/tmp").iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_failed_close_fails_the_delivery(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = begin_delivery(str(tmp_path), b"joe", "Maildir", NameSource(b"h"), NOW, b"")
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


def test_a_write_that_takes_little_is_gone_on_with(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:3])))
    fd = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    write_all(fd, b"0123456789")
    os.close(fd)
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_a_name_that_is_taken_is_passed_over(tmp_path: pathlib.Path) -> None:
    os.close(open_maildir(str(tmp_path), b"joe", "Maildir"))
    taken = tmp_path / "joe/Maildir/tmp/1700000000.M250000P42Q1.mx.example"
    taken.symlink_to(tmp_path / "elsewhere")
    deliver(tmp_path)
    (path,) = (tmp_path / "joe/Maildir/new").iterdir()
    assert "Q2" in path.name
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("user", [b"", b".", b"..", b"../joe", b"a/b", b"a\0b", b".hidden"])
def test_a_user_name_never_leaves_the_store(user: bytes, tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match="can have no maildir"):
        deliver(tmp_path, user=user)
    assert list(tmp_path.iterdir()) == []


def test_tmp_and_new_are_not_followed_elsewhere(tmp_path: pathlib.Path) -> None:
    for folder in ("tmp", "new"):
        root = tmp_path / folder
        os.close(open_maildir(str(root), b"joe", "Maildir"))
        (root / "elsewhere").mkdir()
        (root / "joe/Maildir" / folder).rmdir()
        (root / "joe/Maildir" / folder).symlink_to(root / "elsewhere")
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            deliver(root)
        assert list((root / "elsewhere").iterdir()) == []
        assert len(os.listdir("/proc/self/fd")) == before


def test_the_sweep_takes_old_files_alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.close(open_maildir(str(tmp_path), b"joe", "Maildir"))
    maildir = tmp_path / "joe/Maildir"
    (maildir / "tmp/message").write_bytes(b"x")
    (maildir / "tmp/folder").mkdir()
    (maildir / "new/message").write_bytes(b"x")
    now = (maildir / "tmp/message").stat().st_ctime
    assert sweep(str(maildir), now + 35 * 3600) == 0
    assert sweep(str(maildir), now + 37 * 3600) == 1
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
