"""The files that a configuration names: regular ones alone, each read once, what hangs is known by name."""

from __future__ import annotations

import os
import queue
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mailismus.config.advice.host_probe import ThisHost
from mailismus.config.read import certificates
from mailismus.config.read import load as loading
from mailismus.config.read.files import ANSWER_S, Files
from mailismus.config.read.load import Loader, load
from mailismus.dns.system import SystemHosts
from mailismus.errors import ConfigError
from mailismus.regular_file import Content, read_regular
from tests.fakes.certificates import make_certificate

LISTENER = """<listener name="L{0}" interface="127.0.0.1" port="{1}"><ssl>
<certificate>{2}/cert.pem</certificate>
<privatekey>{2}/key.pem</privatekey></ssl></listener>
"""
TEXT = """<mailserver><directory>
<domains>{0}/domains</domains>
<users>{0}/users</users><postmaster>joe</postmaster></directory>
<mta><submit><listeners>
{1}</listeners></submit></mta></mailserver>
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = make_certificate()
    (tmp_path / "cert.pem").write_bytes(made.pem)
    (tmp_path / "key.pem").write_bytes(made.key_pem)
    (tmp_path / "users").write_text("joe\njane\n")
    (tmp_path / "domains").write_text("our.example\n")
    listeners = "".join(LISTENER.format(number, 2500 + number, tmp_path) for number in range(3))
    (tmp_path / "m.xml").write_text(TEXT.format(tmp_path, listeners))
    return tmp_path


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.fspath(path))


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a FIFO": (os.mkfifo, "it is a FIFO, and only regular files are read"),
    "a device": (make_device, "it is a device, and only regular files are read"),
    "a socket": (make_socket, "No such device or address"),
    "a directory": (os.mkdir, "Is a directory"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "line"), [("m.xml", 0), ("domains", 2), ("users", 3), ("cert.pem", 6), ("key.pem", 7)])
def test_only_regular_files_are_read(place: Path, name: str, line: int, kind: str) -> None:
    make, words = KINDS[kind]
    (place / name).unlink()
    make(place / name)
    with pytest.raises(ConfigError, match=words) as caught:
        load(str(place / "m.xml"))
    assert caught.value.line == line


def test_what_else_reads_files_waits_for_no_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert not ThisHost().holds_more_than_names(str(tmp_path / "fifo"))
    assert SystemHosts(lambda: 0.0, str(tmp_path / "fifo")).addresses("relay.example") == ()


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "f").chmod(0o604)
    assert read_regular(str(tmp_path / "f"), 2) == Content(b"ab", 0o604)
    assert read_regular(str(tmp_path / "f"), 4).data == b"abc"


class Counted:
    """Reads, and counts what it reads."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, path: str, max_bytes: int, on_piece: Callable[[], None]) -> Content:
        self.paths.append(os.path.basename(path))
        return read_regular(path, max_bytes, on_piece)


def test_each_file_is_read_once_a_load_and_each_content_is_checked_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def count(name: str) -> None:
        real = getattr(certificates, name)

        def counted(*arguments: object) -> object:
            made.append(name)
            return real(*arguments)

        monkeypatch.setattr(certificates, name, counted)

    for name in ("_parse_chain", "_find_key", "_check_pair"):
        count(name)
    read = Counted()
    loader = Loader(Files(read))
    first = loader.load(str(place / "m.xml"))
    assert sorted(path for path in read.paths if path != "hosts") == ["cert.pem", "domains", "key.pem", "m.xml", "users"]
    assert made == ["_parse_chain", "_find_key", "_check_pair"]
    second = loader.load(str(place / "m.xml"))
    assert len(made) == 3, "nothing changed"
    assert second.settings.directory.users is first.settings.directory.users
    (place / "users").write_text("joe\n")
    assert loader.load(str(place / "m.xml")).settings.directory.users == {b"joe"}
    assert len(made) == 3
    new = make_certificate()
    (place / "cert.pem").write_bytes(new.pem)
    (place / "key.pem").write_bytes(new.key_pem)
    loader.load(str(place / "m.xml"))
    assert len(made) == 6


def test_a_load_that_fails_leaves_what_was_made_to_the_next(place: Path) -> None:
    loader = Loader()
    users = loader.load(str(place / "m.xml")).settings.directory.users
    text = (place / "m.xml").read_text()
    (place / "m.xml").write_text(text.replace("mailserver", "nailserver"))
    with pytest.raises(ConfigError):
        loader.load(str(place / "m.xml"))
    (place / "m.xml").write_text(text)
    assert loader.load(str(place / "m.xml")).settings.directory.users is users


def test_what_hangs_is_known_by_name_and_line_and_what_answers_slowly_does_not_hang(place: Path) -> None:
    now = 0.0
    found: list[str] = []

    def read(path: str, max_bytes: int, on_piece: Callable[[], None]) -> Content:
        nonlocal now
        for seconds in (ANSWER_S - 1, ANSWER_S - 1, ANSWER_S):
            now += seconds
            hanging = loader.find_hanging()
            found.append(str(hanging) if hanging else "")
            on_piece()
        return read_regular(path, max_bytes)

    loader = Loader(Files(read, lambda: now))
    assert loader.find_hanging() is None
    loader.load(str(place / "m.xml"))
    assert loader.find_hanging() is None
    file = str(place / "m.xml")
    told = [text.partition(" does not answer")[0] for text in found if text]
    assert told == [
        f"{file}: {file}",
        f"{file}: /etc/hosts",
        f"{file}:2: {place}/domains",
        f"{file}:3: {place}/users",
        f"{file}:6: {place}/cert.pem",
        f"{file}:7: {place}/key.pem",
    ]
    assert found[:2] == ["", ""]


def test_a_start_gives_up_a_file_that_does_not_answer(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "LOOK_S", 0.001)
    release: queue.SimpleQueue[None] = queue.SimpleQueue()
    now = 0.0

    def read(path: str, max_bytes: int, on_piece: Callable[[], None]) -> Content:
        nonlocal now
        if path.endswith("users"):
            now += ANSWER_S
            release.get()
        return read_regular(path, max_bytes)

    with pytest.raises(ConfigError) as caught:
        load(str(place / "m.xml"), Loader(Files(read, lambda: now)))
    release.put(None)
    assert caught.value.line == 3
    assert caught.value.text.startswith(f"{place}/users does not answer: nothing came of it for 10 s; ")
