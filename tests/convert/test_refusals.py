"""What ends a conversion, with which exit code, and that it changes nothing: neither the old queue nor its directories."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mailismus.disk.interface import IDirectory, IFile, Space
from mailismus.disk.posix import PosixDirectory, PosixDisk
from mailismus.errors import StartError
from mailismus.providers import PROVIDERS
from mailismus.queue.convert.conversion import convert, tools_of
from mailismus.queue.convert.forgetting import forget_old
from mailismus.queue.files.conversion import (
    ConversionState,
    QueueConversion,
    decode_conversion,
    encode_conversion,
    read_conversion,
    write_conversion,
)
from tests.convert.kinds import (
    KINDS,
    NOW,
    Everything,
    QueueKind,
    convert_to,
    harness_of,
    look,
    make_queue,
    settings_of,
    stop,
)

CLUSTERED, LINKS, LOG, CHUNK = KINDS


@pytest.fixture
def old(tmp_path: Path) -> Everything:
    return make_queue(CLUSTERED, tmp_path)


def refused(status: int, words: str, act: Callable[[], object]) -> str:
    with pytest.raises(StartError, match=words) as caught:
        act()
    assert caught.value.status == status
    return caught.value.text


def check_unchanged(old: Everything, directory: Path, kind: QueueKind = CLUSTERED) -> None:
    """The old queue is as it was, nothing of the conversion is left, and another one goes through."""
    assert look(kind, directory) == old
    assert not (directory / "queue" / "conversion").exists()
    assert not (directory / "spool" / "conversion").exists()
    convert_to(LOG, directory)
    assert look(LOG, directory) == old


def a_file(directory: Path, pattern: str) -> Path:
    return sorted(path for path in directory.glob(pattern) if path.stat().st_size)[0]


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x15
    path.write_bytes(bytes(data))


def rest(directory: Path) -> None:
    """Convert to the same provider: then all entries lie in clusters."""
    convert_to(CLUSTERED, directory)
    forget_old(PosixDisk(), str(directory / "queue"))


@pytest.mark.parametrize("area", ["incoming", "deferred/*", "bounces"])
def test_a_damaged_line_is_refused(old: Everything, tmp_path: Path, area: str) -> None:
    rest(tmp_path)
    path = a_file(tmp_path / "queue", f"{area}/*.mqc")
    whole = path.read_bytes()
    flip(path, len(whole) - 30)
    refused(65, "does not check; mailismus fsck shows what is damaged", lambda: convert_to(LOG, tmp_path))
    path.write_bytes(whole)
    check_unchanged(old, tmp_path)


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_damaged_or_missing_message_file_is_refused(old: Everything, tmp_path: Path, is_gone: bool) -> None:
    path = a_file(tmp_path / "spool", "*/*.msg")
    whole = path.read_bytes()
    path.unlink() if is_gone else flip(path, 10)
    refused(65, "fsck", lambda: convert_to(LOG, tmp_path))
    path.write_bytes(whole)
    check_unchanged(old, tmp_path)


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    old = make_queue(CLUSTERED, tmp_path, is_killed=True)
    path = next(path for path in tmp_path.glob("queue/journal/*.mqj") if b"X-Number: 4\r" in path.read_bytes())
    whole = path.read_bytes()
    flip(path, whole.index(b"X-Number: 4\r"))
    refused(65, "fsck", lambda: convert_to(LOG, tmp_path))
    path.write_bytes(whole)
    check_unchanged(old, tmp_path)


def test_a_damaged_log_is_refused(tmp_path: Path) -> None:
    old = make_queue(LOG, tmp_path)
    convert_to(LOG, tmp_path)
    forget_old(PosixDisk(), str(tmp_path / "queue"))
    path = a_file(tmp_path / "queue", "log/*.mqj")
    whole = path.read_bytes()
    flip(path, 4096 + 900)
    refused(65, "fsck", lambda: convert_to(CLUSTERED, tmp_path))
    path.write_bytes(whole)
    check_unchanged(old, tmp_path, LOG)


def test_an_area_that_is_gone_is_refused(old: Everything, tmp_path: Path) -> None:
    (tmp_path / "queue" / "bounces").rename(tmp_path / "bounces")
    refused(65, "bounces is gone", lambda: convert_to(LOG, tmp_path))
    (tmp_path / "bounces").rename(tmp_path / "queue" / "bounces")
    check_unchanged(old, tmp_path)


def test_an_area_on_another_file_system_is_refused(old: Everything, tmp_path: Path) -> None:
    (tmp_path / "queue" / "deferred").rename(tmp_path / "elsewhere")
    (tmp_path / "queue" / "deferred").symlink_to(tmp_path / "elsewhere")
    refused(78, "deferred is a symbolic link, which can't change places", lambda: convert_to(LOG, tmp_path))


def test_a_running_server_is_not_disturbed(old: Everything, tmp_path: Path) -> None:
    harness = harness_of(CLUSTERED, tmp_path)
    queue = harness.open()
    refused(75, "stop it first", lambda: convert_to(LOG, tmp_path))
    assert not (tmp_path / "queue" / "conversion").exists()
    stop(harness, queue)
    check_unchanged(old, tmp_path)


def test_no_server_starts_meanwhile(old: Everything, tmp_path: Path) -> None:
    tried: list[str] = []

    def progress(what: str, done: int, total: int) -> None:
        if what not in tried:
            tried.append(what)
            refused(75, "another server holds", harness_of(CLUSTERED, tmp_path).open)
            refused(75, "holds", lambda: convert_to(CLUSTERED, tmp_path))

    tools = tools_of(PROVIDERS, PosixDisk(), lambda: NOW, progress)
    convert(settings_of(LOG, tmp_path), PROVIDERS.named("log"), tools)
    assert tried == ["entries read", "messages copied", "messages compared"]
    assert look(LOG, tmp_path) == old


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user")
def test_another_user_s_queue_is_refused(old: Everything, tmp_path: Path) -> None:
    os.chown(tmp_path / "queue", 12345, -1)
    refused(77, "belongs to user 12345", lambda: convert_to(LOG, tmp_path))
    refused(77, "belongs to user 12345", lambda: forget_old(PosixDisk(), str(tmp_path / "queue")))
    os.chown(tmp_path / "queue", 0, -1)
    check_unchanged(old, tmp_path)


def test_there_must_be_a_queue(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    refused(78, "queue does not exist", lambda: convert_to(LOG, tmp_path))
    (tmp_path / "queue").mkdir(0o700)
    refused(78, "has no mark of a provider", lambda: convert_to(LOG, tmp_path))
    assert not list((tmp_path / "queue").iterdir())


def test_the_old_queue_is_never_replaced_by_another_old_one(old: Everything, tmp_path: Path) -> None:
    convert_to(LOG, tmp_path)
    refused(78, "remove it first: mailismus queue convert --forget-old", lambda: convert_to(CLUSTERED, tmp_path))
    assert look(CLUSTERED, tmp_path, "conversion/old") == old
    forget_old(PosixDisk(), str(tmp_path / "queue"))
    refused(78, "there is nothing to forget", lambda: forget_old(PosixDisk(), str(tmp_path / "queue")))
    assert look(LOG, tmp_path) == old


def test_the_old_queue_is_forgotten_beside_a_running_server(old: Everything, tmp_path: Path) -> None:
    convert_to(LOG, tmp_path)
    harness = harness_of(LOG, tmp_path)
    queue = harness.open()
    forget_old(PosixDisk(), str(tmp_path / "queue"))
    assert not (tmp_path / "queue" / "conversion").exists()
    stop(harness, queue)
    assert look(LOG, tmp_path) == old


def test_a_damaged_state_is_judged_by_nobody(old: Everything, tmp_path: Path) -> None:
    convert_to(LOG, tmp_path)
    flip(tmp_path / "queue" / "conversion" / "state", 9)
    for act in (
        lambda: convert_to(LOG, tmp_path),
        lambda: forget_old(PosixDisk(), str(tmp_path / "queue")),
        lambda: PROVIDERS.configured(settings_of(LOG, tmp_path)),
        harness_of(LOG, tmp_path).open,
    ):
        refused(65, "the state of the conversion is damaged", act)


def test_a_state_that_is_gone_does_not_cost_the_old_queue(old: Everything, tmp_path: Path) -> None:
    convert_to(LOG, tmp_path)
    (tmp_path / "queue" / "conversion" / "state").unlink()
    refused(65, "holds files, and .*/state is gone", lambda: convert_to(CLUSTERED, tmp_path))
    assert look(CLUSTERED, tmp_path, "conversion/old") == old


def test_a_conversion_that_was_stopped_between_is_finished_by_its_own_command_alone(old: Everything, tmp_path: Path) -> None:
    class Failing(PosixDisk):
        def rename(self, path: str, new_path: str) -> None:
            if path.endswith("conversion/new/log"):
                raise OSError(errno.EIO, "injected", path)
            super().rename(path, new_path)

    refused(74, "begin again", lambda: convert_to(LOG, tmp_path, Failing()))
    refused(78, "finish it first: mailismus queue convert --to log", lambda: convert_to(CLUSTERED, tmp_path))
    refused(75, "finish it", lambda: forget_old(PosixDisk(), str(tmp_path / "queue")))
    refused(75, "finish it", lambda: PROVIDERS.found_in(str(tmp_path / "queue")))
    assert convert_to(LOG, tmp_path).copied is None
    assert look(LOG, tmp_path) == old


class Narrow(PosixDisk):
    """Says that so much is free on every file system."""

    def __init__(self, space: Space) -> None:
        super().__init__()
        self._space = space

    def space(self, path: str) -> Space:
        return self._space


@pytest.mark.parametrize(
    ("space", "what"),
    [(Space(1 << 30, 1 << 20, 0, 0), "bytes"), (Space(1 << 40, 1 << 39, 1000, 40), "inodes")],
)
def test_room_is_looked_at_before_anything_is_built(old: Everything, tmp_path: Path, space: Space, what: str) -> None:
    text = refused(74, f"{what}, and .* are free", lambda: convert_to(CLUSTERED, tmp_path, Narrow(space)))
    assert "make room there and begin again; nothing was changed" in text
    check_unchanged(old, tmp_path)


class _Bad:
    """A file whose writes go wrong."""

    def __init__(self, file: IFile) -> None:
        self._file = file

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        self._file.write_at(offset, [data.replace(b"X-Number", b"Y-Number") for data in buffers])


class _BadDirectory(PosixDirectory):
    """A directory whose new files are such."""

    def create(self, name: str) -> IFile:
        return _Bad(super().create(name))  # type: ignore[return-value]  # as one, by its attributes


class Lying(PosixDisk):
    """Writes other bytes than it was given, where the new queue is built."""

    def create(self, path: str) -> IFile:
        file = super().create(path)
        return _Bad(file) if "/conversion/new/" in path else file  # type: ignore[return-value]  # as one, by its attributes

    def open_directory(self, path: str, *, may_be_link: bool = False) -> IDirectory:
        directory = super().open_directory(path, may_be_link=may_be_link)
        assert isinstance(directory, PosixDirectory)
        return _BadDirectory(directory.fd, directory._flags) if "/conversion/new/" in path else directory


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_does_not_read_back_never_takes_the_place(old: Everything, tmp_path: Path, kind: QueueKind) -> None:
    refused(74, "does not read back as it was written", lambda: convert_to(kind, tmp_path, Lying()))
    check_unchanged(old, tmp_path)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    disk = PosixDisk()
    (tmp_path / "conversion").mkdir()
    assert read_conversion(disk, str(tmp_path)) is None
    for spool_path in (None, "/srv/with space/%41/ü"):
        for state in ConversionState:
            conversion = QueueConversion(state, "clustered", "log", spool_path)
            write_conversion(disk, str(tmp_path), conversion)
            assert read_conversion(disk, str(tmp_path)) == conversion
    data = encode_conversion(conversion)
    for at in range(len(data)):
        assert decode_conversion(data[:at]) is None
        assert decode_conversion(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]) is None
