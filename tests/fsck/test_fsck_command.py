"""The command `mailismus fsck` on files of the system: what it prints, its exit codes, and that a look changes nothing."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from mailismus.__main__ import main
from mailismus.errors import StartError
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.clustered.fsck.repair import repair
from mailismus.spool.silo import message_path
from tests.clustered.harness import queue_settings
from tests.fsck import damages
from tests.fsck.places import Place
from tests.fsck.worlds import Stopped


@pytest.fixture
def place(tmp_path: Path) -> Place:
    stopped = Stopped()
    damages.line_byte(stopped)
    damages.cluster_dead(stopped)
    damages.message_damaged(stopped)
    return Place(tmp_path, stopped)


def test_a_look_explains_and_changes_nothing(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    before = place.snapshot()
    assert place.run() == 65
    assert place.snapshot() == before
    out = capsys.readouterr().out
    path = place.real(message_path("/s", damages._large(place.stopped)))
    assert (
        f"lost        {path}\n            the message file's content does not check; 3 of its recipients still wait" in out
    )
    assert "            --repair copies what is here to corrupt/ and makes bounces" in out
    assert "repairable  " in out
    assert "\nharmless    " in out
    assert out.splitlines()[-1] == (
        "checked 5 segments, 6 clusters, 18 live entries, 6 message files: 1 lost, 1 repairable, 1 harmless"
    )


def test_a_look_opens_nothing_for_writing(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = []
    real = os.open

    def opened(path: str, flag: int, mode: int = 0o777) -> int:
        flags.append(flag)
        return real(path, flag, mode)

    monkeypatch.setattr(os, "open", opened)
    (place.path / "spool" / "lock").unlink()
    assert place.run() == 65
    assert flags
    assert not any(flag & (os.O_RDWR | os.O_WRONLY | os.O_CREAT) for flag in flags)
    assert not (place.path / "spool" / "lock").exists()


def test_a_repair_says_what_it_did_and_a_second_look_finds_nothing(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.run("--repair") == 65  # a message is lost
    out = capsys.readouterr().out
    assert "            repaired: copies the bytes to corrupt/ and puts it right" in out
    assert place.run("--repair") == 0
    assert place.run() == 0
    out = capsys.readouterr().out
    assert "note        " in out
    assert out.splitlines()[-1].endswith(": 2 notes")
    kept = sorted(path.name for path in (place.path / "queue" / "corrupt").iterdir())
    assert len(kept) == 2
    assert any(name.startswith("spool-") for name in kept)


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_repair_that_nobody_listens_to_any_more_comes_to_its_end(place: Place, words: tuple[str, ...]) -> None:
    for number in range(3000):  # more than a pipe holds
        place.real(f"/q/incoming/foreign-{number}").touch(0o600)
    command = [sys.executable, "-m", "mailismus", "--config", place.config, "fsck", *words]
    for extra, status in (((), 65), (("--repair",), 65), (("--repair",), 0)):
        running = subprocess.Popen([*command, *extra], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == status
        running.stderr.close()
    assert place.run() == 0


def test_json_has_an_object_a_line(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.run("--json") == 65
    *findings, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {finding["kind"] for finding in findings} == {"line-byte", "cluster-dead", "message-lost"}
    assert all(set(finding) == {"severity", "kind", "file", "offset", "what", "repair"} for finding in findings)
    assert last["found"] == {"note": 0, "harmless": 1, "repairable": 1, "lost": 1}
    assert last["checked"]["entries"] == 18
    assert place.run("--json", "--repair") == 65
    *findings, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {finding["done"] for finding in findings} == {"repaired", "by-start"}


def test_of_many_of_a_kind_the_first_ones_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = Stopped()
    for number in range(25):
        damages._store(stopped, message_path("/s", SpoolId(damages.FIRST + 100 + number)), b"a draft that was cut")
    place = Place(tmp_path, stopped)
    assert place.run() == 0
    out = capsys.readouterr().out
    assert out.count("a message file that no entry needs") == 20
    assert "25 of kind message-stray in all (--json tells each)" in out
    assert out.splitlines()[-1].endswith(": 25 harmless")
    assert place.run("--json") == 0
    assert len(capsys.readouterr().out.splitlines()) == 26


def test_a_sound_queue_is_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(tmp_path, Stopped())
    assert place.run() == 0
    assert capsys.readouterr().out == ("checked 5 segments, 5 clusters, 18 live entries, 6 message files: nothing found\n")
    assert main(["fsck", *place.copy_words()]) == 0


@pytest.mark.parametrize("words", [(), ("--repair",)])
@pytest.mark.parametrize("root", ["queue", "spool"])
def test_a_queue_that_a_server_holds_is_75(
    place: Place, root: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = place.snapshot()
    with (place.path / root / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert place.run(*words) == 75
    assert "a server or another fsck holds" in capsys.readouterr().err
    assert place.snapshot() == before


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--spool", "x"), 64),
        (("--queue", "x"), 78),
        (("--queue", "/"), 78),
        (("--queue", "x", "--spool", "y", "--repair"), 64),
        (("--queue", "/nowhere", "--spool", "/nowhere"), 78),
    ],
)
def test_what_makes_no_sense_is_refused(place: Place, words: tuple[str, ...], status: int) -> None:
    assert place.run(*words) == status


def test_a_queue_without_its_spool_is_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.run(*place.copy_words()[:2]) == 64
    assert "write --spool DIR too" in capsys.readouterr().err


def test_a_queue_of_another_user_is_not_repaired(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    settings = attrs.evolve(queue_settings(), rootpath=str(place.path / "queue"))
    with pytest.raises(StartError, match="repair it as that user") as refused:
        repair(settings, 0.0)
    assert refused.value.status == 77


@pytest.fixture
def read_only(place: Place, tmp_path: Path) -> Iterator[Path]:
    """The place again, on a file system that can't be written, its files another user's."""
    target = tmp_path / "read-only"
    target.mkdir()
    bound = subprocess.run(["mount", "--bind", str(place.path), str(target)], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip(f"nothing can be mounted here: {bound.stderr.decode().strip()}")
    try:
        for path in (place.path / "queue", place.path / "spool", *(place.path / "queue").rglob("*")):
            os.chown(path, 4711, 4711)
        made = subprocess.run(["mount", "-o", "remount,ro,bind", str(target)], capture_output=True, check=False)
        if made.returncode:
            pytest.skip(f"nothing can be mounted read-only here: {made.stderr.decode().strip()}")
        yield target
    finally:
        subprocess.run(["umount", str(target)], check=True)


def test_a_copy_on_a_read_only_file_system_of_another_user_is_looked_at(
    read_only: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--queue", str(read_only / "queue"), "--spool", str(read_only / "spool")]
    with pytest.raises(OSError, match="Read-only"):
        (read_only / "queue" / "x").touch()
    assert main(["fsck", *words]) == 65
    assert "6 message files: 1 lost, 1 repairable, 1 harmless" in capsys.readouterr().out
    assert main(["queue", "count", "--json", *words]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert counted["incoming"]["entries"] + counted["deferred"]["entries"] + counted["bounces"]["entries"] == 18
    assert main(["queue", "list", "--json", *words]) == 0
    assert "0000000100000001" in capsys.readouterr().out
    assert main(["queue", "show", "0000000100000001", *words]) == 0
    assert "Subject: 0" in capsys.readouterr().out


def test_a_copy_without_its_empty_directories_is_looked_at(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (place.path / "queue").glob("bounces/*.mqc"):
        path.unlink()
    (place.path / "queue" / "bounces").rmdir()
    (place.path / "queue" / "deferred" / "20301231T2359").write_text("a file where a slot is expected")
    assert main(["queue", "count", "--json", *place.copy_words()]) == 0
    assert json.loads(capsys.readouterr().out)["bounces"]["entries"] == 0
    assert main(["fsck", *place.copy_words()]) == 65
    out = capsys.readouterr().out
    assert "a file where a directory of ours should be" in out
    assert "bounces\n            the directory of an area is not there" in out
    assert place.run("--repair") == 65
    assert place.run() == 0


def test_one_directory_is_not_both(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    queue = str(place.path / "queue")
    assert main(["fsck", "--queue", queue, "--spool", f"{queue}/."]) == 64
    assert f"{queue} is given as both" in capsys.readouterr().err


def test_a_repair_that_is_interrupted_ends_at_once_and_is_begun_again(place: Place) -> None:
    for number in range(3000):  # more than a pipe holds: it waits for who reads
        place.real(f"/q/incoming/foreign-{number}").touch(0o600)
    command = [sys.executable, "-m", "mailismus", "--config", place.config, "fsck", "--json", "--repair"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait() == -signal.SIGINT
        assert running.stderr.read() == b""
    assert place.run("--repair") == 65
    assert place.run() == 0
