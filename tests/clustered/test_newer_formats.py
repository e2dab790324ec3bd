"""A queue that a newer program has written to: the start and every command refuse it, and change nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import pytest
from twisted.internet.task import Clock

from mailismus.__main__ import main
from mailismus.disk.posix import PosixDisk
from mailismus.errors import StartError
from mailismus.journal.batch import BLOCK
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from tests.clustered.harness import queue_settings
from tests.contracts.bench import Bench
from tests.fakes.worker import ClockWorker
from tests.fsck.places import Place
from tests.fsck.worlds import Stopped
from tests.project.runners import command, environment

HEADER_SIZE = 64
TRAILER_SIZE = 36

Damage = Callable[[Place], Path]
"""Makes one file one of format 3; its path."""


def write_header(path: Path, number: bytes = b"\3\0\0\0") -> Path:
    """The segment's header says another format, and checks."""
    data = bytearray(path.read_bytes())
    data[:8] = b"MQJ-SEGM"
    data[8:12] = number
    data[HEADER_SIZE : HEADER_SIZE + 4] = zlib.crc32(bytes(data[:HEADER_SIZE])).to_bytes(4, "little")
    path.write_bytes(data)
    return path


def segments(place: Place) -> list[Path]:
    """Oldest first."""
    return sorted((place.path / "queue" / "journal").glob("0*.mqj"))


def newest_segment(place: Place) -> Path:
    return write_header(place.real(place.stopped.segment()))


def oldest_segment(place: Place) -> Path:
    assert len(segments(place)) > 1
    return write_header(segments(place)[0])


def free_segment(place: Place) -> Path:
    """One that was used and is free, or never was used."""
    return write_header(sorted((place.path / "queue" / "journal").glob("ready-*.mqj"))[0])


def free_segment_that_holds_batches(place: Place) -> Path:
    """Its number is that of a newer program; what it holds is long behind the horizon."""
    free = sorted((place.path / "queue" / "journal").glob("ready-*.mqj"))[0]
    data = bytearray(segments(place)[0].read_bytes())
    free.write_bytes(data)
    return write_header(free)


def cluster_of(area: Area) -> Damage:
    def damage(place: Place) -> Path:
        path = place.real(place.stopped.clusters(area)[0])
        _, _, rest = path.read_bytes().partition(b"\n")
        header = f"MQC 3 {area.value} {path.stem} and:more".encode()
        path.write_bytes(b"%b %08x\n" % (header, zlib.crc32(header)) + rest)
        return path

    return damage


WITH_CLUSTERS = (Area.INCOMING, Area.DEFERRED, Area.BOUNCES)

CASES: dict[str, Damage] = {
    "newest segment": newest_segment,
    "oldest segment": oldest_segment,
    "free segment": free_segment,
    "free segment with batches": free_segment_that_holds_batches,
    **{f"cluster in {area.value}": cluster_of(area) for area in WITH_CLUSTERS},
}


def message_file(place: Place) -> Path:
    """A message file with a trailer of a newer program."""
    path = place.real(place.stopped.paths(".msg")[0])
    content = path.read_bytes()[:-TRAILER_SIZE]
    trailer = b"MSG 3 %d and more" % len(content)
    path.write_bytes(content + b"%b %08x\n" % (trailer, zlib.crc32(trailer)))
    return path


def checksums(place: Place) -> dict[str, tuple[int, int, str]]:
    """Every file and directory below the queue and the spool."""
    found = {}
    for root in ("queue", "spool"):
        for path in (place.path / root, *(place.path / root).rglob("*")):
            facts = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = (facts.st_mode, facts.st_mtime_ns, digest)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Killed, started and killed again: two segments have been begun."""
    stopped = Stopped()
    stopped.bench = Bench(stopped.harness, stopped.harness.open())
    stopped.put(2, 150)
    stopped.harness.settle_down()
    stopped.harness.clock.calls.clear()
    stopped.disk.kill()
    return Place(tmp_path, stopped)


def start(place: Place) -> str:
    """Start on these files; why that was refused."""
    settings = queue_settings()
    spool = attrs.evolve(settings.spool, rootpath=str(place.path / "spool"))
    settings = attrs.evolve(settings, rootpath=str(place.path / "queue"), spool=spool)
    clock = Clock()
    with pytest.raises(StartError) as refused:
        open_queue(settings, PosixDisk(), ClockWorker(clock), clock, os.urandom)
    assert refused.value.status == 65
    return refused.value.text


def sentence(path: Path, reads: str = "1 and 2") -> str:
    return f"{path} is of format 3, written by a newer Mailismus; this one reads {reads}: start that one"


COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("queue", "list"),
    "count": ("queue", "count"),
    "shape": ("queue", "shape"),
    "show": ("queue", "show", "0000000100000001"),
    "fsck": ("fsck",),
    "fsck --json": ("fsck", "--json"),
    "fsck --repair": ("fsck", "--repair"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_newer_file_is_refused_and_nothing_is_changed(place: Place, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = CASES[case](place)
    before = checksums(place)
    assert start(place) == sentence(path)
    assert checksums(place) == before
    for words in (*COMMANDS.values(), ("dump", str(path))):
        assert main(["--config", place.config, *words]) == 65, words
        said = capsys.readouterr()
        assert said.err.strip() == sentence(path)
        assert said.out == ""
        assert checksums(place) == before
    assert main(["fsck", *place.copy_words()]) == 65
    assert main(["queue", "list", *place.copy_words()]) == 65
    assert checksums(place) == before


def test_a_newer_message_file_is_refused_by_all_that_read_it(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    path = message_file(place)
    before = checksums(place)
    reading = (COMMANDS["fsck"], COMMANDS["fsck --repair"], ("dump", str(path)), ("queue", "show", path.stem))
    for words in reading:
        assert main(["--config", place.config, *words]) == 65, words
        assert capsys.readouterr().err.strip() == sentence(path, "1")
        assert checksums(place) == before


@pytest.mark.parametrize(
    ("case", "names"),
    [("newest segment", tuple(COMMANDS)), ("cluster in deferred", ("list",))],
    ids=["newest segment", "cluster in deferred"],
)
def test_the_commands_and_the_start_end_with_65_as_processes(place: Place, case: str, names: tuple[str, ...]) -> None:
    path = CASES[case](place)
    before = checksums(place)
    program = [sys.executable, "-m", "mailismus", "--config", place.config]
    lines = [[*program, *words] for words in (*(COMMANDS[name] for name in names), ("dump", str(path)))]
    run = partial(subprocess.run, cwd=place.path, env=environment(), capture_output=True, text=True, timeout=60)
    for line in [*lines, list(command("foreground", place.config))]:
        done = run(line, check=False)
        assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (65, sentence(path)), line
        assert checksums(place) == before


def test_a_damaged_format_number_is_damage_and_no_newer_format(place: Place) -> None:
    """Of a segment, a cluster and a message file: their CRCs do not check."""
    segment = segments(place)[0]
    data = bytearray(segment.read_bytes())
    assert data[8:12] == b"\1\0\0\0"
    data[8] = 3
    segment.write_bytes(data)
    for area in WITH_CLUSTERS:
        cluster = place.real(place.stopped.clusters(area)[0])
        cluster.write_bytes(b"MQC 3" + cluster.read_bytes()[5:])
    message = place.real(place.stopped.paths(".msg")[0])
    content = message.read_bytes()
    message.write_bytes(content[:-TRAILER_SIZE] + b"MSG 3" + content[-TRAILER_SIZE + 5 :])
    assert main(["--config", place.config, "fsck", "--repair"]) == 0
    assert main(["--config", place.config, "fsck"]) == 0
    assert message.read_bytes() == content
    assert len(segment.read_bytes()) > BLOCK


def test_what_can_not_be_read_is_passed_over(place: Place) -> None:
    """It is reported by whoever needs it; the files behind it are looked at all the same."""
    path = newest_segment(place)
    (place.path / "queue" / "journal" / "00000000.mqj").mkdir()
    assert start(place) == sentence(path)
