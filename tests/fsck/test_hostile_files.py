"""fsck on what somebody planted among the files of a stopped queue: nothing else is touched, nothing hangs, nothing fills
memory."""

from __future__ import annotations

import errno
import os
import socket
import zlib
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from twisted.internet.task import Clock

from mailismus.disk.interface import IFile
from mailismus.disk.posix import PosixDisk, PosixFile
from mailismus.errors import StartError, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.target import LONGEST_FILE
from mailismus.queue.fsck.quarantine import Quarantine
from mailismus.queue.fsck.turns import TurnWorker
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from mailismus.spool.silo import message_path
from tests.fsck import damages
from tests.fsck.places import Place
from tests.fsck.worlds import Stopped

TERABYTE = 1 << 40


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, Stopped())


def all_kept(place: Place) -> list[str]:
    return sorted(path.name for path in (place.path / "queue" / "corrupt").iterdir())


@pytest.mark.parametrize("name", ["queue/corrupt", "queue/journal", "queue/incoming", "spool/04", "queue", "spool"])
def test_a_repair_writes_nothing_below_a_symbolic_link(
    place: Place, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing at all: what is wrong besides waits until the directory is back."""
    place.real("/q/lock").unlink()
    place.real("/q/lock").mkdir(0o700)
    elsewhere = tmp_path / "elsewhere"
    (place.path / name).rename(elsewhere)
    (place.path / name).symlink_to(elsewhere)
    before = place.snapshot()
    assert place.run() == 65
    assert "is a symbolic link" in capsys.readouterr().out
    assert place.run("--repair") == 77
    assert f"{place.path / name} is a symbolic link, not a directory: put the directory back" in capsys.readouterr().err
    assert place.snapshot() == before


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, _socket, lambda path: path.symlink_to("/etc/hostname")])
@pytest.mark.parametrize("is_marked", [True, False])
def test_what_is_no_file_in_place_of_a_new_mark_is_moved_away(
    place: Place, make: Callable[[Path], None], is_marked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory keeps a queue that has no mark from starting, and none of these can be copied."""
    if not is_marked:
        place.real("/q/provider").unlink()
    make(place.real("/q/provider.new"))
    assert place.run("--repair") == 0
    assert "left by a start that was stopped" in capsys.readouterr().out
    assert not os.path.lexists(place.real("/q/provider.new"))
    assert place.real("/q/provider").read_bytes() == b"clustered 2\n"
    assert any(name.startswith("provider.new-") for name in all_kept(place))


def test_a_mark_that_can_not_be_read_is_written_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = place.real("/q/provider").stat().st_ino
    open_file = PosixDisk.open

    def open_other(disk: PosixDisk, path: str) -> IFile:
        if os.stat(path).st_ino == bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return open_file(disk, path)

    monkeypatch.setattr(PosixDisk, "open", open_other)
    assert place.run() == 65
    assert "it can't be read (Input/output error)" in capsys.readouterr().out
    assert place.run("--repair") == 0
    assert place.real("/q/provider").read_bytes() == b"clustered 2\n"


def test_a_pipe_in_a_wrong_silo_is_not_waited_for(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Its name says that it is a message that is looked for."""
    spool_id = damages._large(place.stopped)
    path = place.real(message_path("/s", spool_id))
    wrong = place.path / "spool" / "1f" / path.name
    path.unlink()
    os.mkfifo(wrong, 0o600)
    assert place.run() == 65
    assert f"{wrong}\n            a pipe, a socket or a device where a file of ours should be" in capsys.readouterr().out
    assert place.run("--repair") == 65
    assert all_kept(place) == [f"spool-1f-{path.name}-0"]
    assert place.run("--repair") == 0


def test_a_symbolic_link_is_called_one(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.real("/q/incoming/7-7.mqc").symlink_to("/etc/hostname")
    place.real("/q/deferred/20301231T2359").symlink_to("/etc")
    assert place.run() == 65
    out = capsys.readouterr().out
    assert "a symbolic link where a file of ours should be" in out
    assert "a symbolic link where a directory of ours should be" in out
    assert place.run("--repair") == 0
    assert all_kept(place) == ["deferred-20301231T2359-0", "incoming-7-7.mqc-0"]
    assert os.readlink(place.real("/q/corrupt/incoming-7-7.mqc-0")) == "/etc/hostname"


def test_a_name_as_long_as_a_file_system_takes_is_set_aside(place: Place) -> None:
    place.real("/q/incoming/" + "ü" * 125 + ".mqc").write_bytes(b"of no checkpoint")
    assert place.run("--repair") == 0
    (kept,) = all_kept(place)
    assert len(os.fsencode(kept)) < 200


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/hostname", path)])
def test_what_is_no_file_passes_for_no_copy(place: Place, plant: object) -> None:
    path = place.real(message_path("/s", damages._large(place.stopped)))
    aside = Quarantine(PosixDisk(), str(place.path / "queue"), str(place.path / "spool"), ".mqc")
    name = f"spool-{path.parent.name}-{path.name}-0"
    assert callable(plant)
    plant(str(place.real(f"/q/corrupt/{name}")))
    aside.keep(str(path))
    kept = place.real(f"/q/corrupt/{name}~2").read_bytes()
    assert kept == b"from %b at 0\n" % os.fsencode(path) + path.read_bytes()


def test_a_huge_segment_stops_a_repair_before_anything_is_given_up(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    segment = place.real(place.stopped.segment())
    size = segment.stat().st_size
    os.truncate(segment, TERABYTE)
    before = place.snapshot()
    assert place.run() == 65
    assert f"{TERABYTE} bytes are more than any segment has" in capsys.readouterr().out
    assert place.run("--repair") == 74
    assert "cut it or move it away, and begin again" in capsys.readouterr().err
    assert place.snapshot() == before
    os.truncate(segment, size)
    assert place.run() == 0
    assert "18 live entries" in capsys.readouterr().out


def test_of_a_huge_cluster_what_counts_is_read(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = place.real(next(path for path in place.stopped.clusters(Area.INCOMING)))
    dead, foreign = place.real("/q/incoming/99-1.mqc"), place.real("/q/incoming/foo.mqc")
    for path in (cluster, dead, foreign):
        path.touch(0o600)
        os.truncate(path, TERABYTE)
    assert place.run("--repair") == 65
    out = capsys.readouterr().out
    assert "of checkpoint 99, which never came to its end" in out
    assert f"can't be read: {TERABYTE} bytes are more than any cluster has" in out
    assert out.splitlines()[-1].endswith("18 live entries, 6 message files: 1 lost, 2 harmless")
    assert all_kept(place) == ["incoming-foo.mqc-0"]
    assert place.run() == 0
    assert cluster.stat().st_size < LONGEST_FILE


def test_of_what_stands_behind_a_message_no_zeros_are_copied(place: Place) -> None:
    path = place.real(message_path("/s", damages._large(place.stopped)))
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"another's")
    os.truncate(path, 100 << 20)
    assert place.run("--repair") == 0
    assert path.stat().st_size == size
    (kept,) = all_kept(place)
    assert place.real(f"/q/corrupt/{kept}").read_bytes() == b"from %b at %d\nanother's" % (os.fsencode(path), size)


def test_a_repair_that_may_not_go_on_says_why() -> None:
    with pytest.raises(Unavailable, match="because"):
        actions.stop("because", None)  # type: ignore[arg-type] # what must not be done takes no executor


def test_of_a_huge_file_that_is_no_message_the_end_alone_is_read(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """To read a terabyte takes longer than any test."""
    stray = place.real(message_path("/s", SpoolId(damages.FIRST + 100)))
    stray.touch(0o600)
    os.truncate(stray, TERABYTE)
    assert place.run() == 0
    assert f"{stray}\n            a message file that no entry needs" in capsys.readouterr().out
    assert place.run("--repair") == 0
    assert not stray.exists()


def line_that_says(line: bytes, field: int, value: bytes) -> bytes:
    """The same line with another field, and a CRC that fits."""
    fields = line[1:].split(b" ")[:-1]
    fields[field] = value
    body = b" ".join(fields)
    return b" %b %08x\n" % (body, zlib.crc32(body))


@pytest.mark.parametrize("value", [b"99999999999999999999", b"4294967296", b"-1", b"0/0", b"1_0", b"FFFFFFFFFFFFFFFF", b""])
def test_no_number_is_too_absurd(place: Place, value: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """In a file that checks: none breaks a look, and none uses up the spool ids."""
    (name, *_) = place.stopped.clusters(Area.INCOMING)
    header, line, *_ = place.real(name).read_bytes().split(b"\n")
    lines = [line_that_says(line, field, value) for field in range(1, 15)]
    lines += [line_that_says(line, 2, value + b"/3"), line_that_says(line, 2, b"1/" + value)]
    foreign = place.real("/q/incoming/foreign.mqc")
    foreign.write_bytes(header + b"\n" + b"".join(lines))
    foreign.chmod(0o600)
    assert place.run() == 65
    assert "epoch" not in capsys.readouterr().out
    place.run("--repair")
    assert place.run() == 0
    assert place.run("--repair") == 0


@pytest.mark.parametrize("name", ["00000001.mqj", "00000007.mqj"])
def test_a_start_that_meets_a_huge_segment_points_to_fsck(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In use, or begun once and not readable."""
    real = PosixFile.read_at

    def read_at(file: PosixFile, offset: int, size_bytes: int) -> bytes:
        if size_bytes == TERABYTE:
            raise MemoryError  # some systems would give it, and run out of it later
        return real(file, offset, size_bytes)

    monkeypatch.setattr(PosixFile, "read_at", read_at)
    place = Place(tmp_path, Stopped())
    segment = place.real(f"/q/journal/{name}")
    if not segment.exists():
        segment.touch(0o600)
        segment.write_bytes(b"x")
    os.truncate(segment, TERABYTE)
    before = {name: facts for name, facts in place.snapshot().items() if facts[2] != TERABYTE}
    settings = attrs.evolve(
        place.stopped.harness.settings,
        rootpath=str(place.path / "queue"),
        spool=attrs.evolve(place.stopped.harness.settings.spool, rootpath=str(place.path / "spool")),
    )
    clock = Clock()
    with pytest.raises(StartError, match="mailismus fsck tells which is too long") as refused:
        open_queue(settings, PosixDisk(), TurnWorker(clock), clock, os.urandom)
    assert refused.value.status == 71
    assert before.items() <= place.snapshot().items()


def test_a_spool_that_is_not_mounted_gives_nothing_up(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool = place.path / "spool"
    spool.rename(tmp_path / "not mounted")
    spool.mkdir(0o700)
    before = place.snapshot()
    assert place.run("--repair") == 78
    assert f"{spool} is empty, but the queue is not new: mount the spool" in capsys.readouterr().err
    assert place.snapshot() == before
    (spool / "00").mkdir(0o700)
    place.run("--repair")
    assert place.run() == 0
