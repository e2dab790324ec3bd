"""The mark of a queue's directory: what is written, when it is durable, and what is refused."""

from __future__ import annotations

import errno
import io
from pathlib import Path

import pytest

from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.mark import (
    MARK,
    NEW_MARK,
    Mark,
    decode_mark,
    dump_mark,
    encode_mark,
    ensure_mark,
    read_mark,
    refuse_other,
    write_mark,
)
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.moments import behind_one_who_was_killed, moments
from tests.fakes.disk import MemoryDisk

OURS = Mark("clustered", 1)
PATH, NEW_PATH = f"/q/{MARK}", f"/q/{NEW_MARK}"


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/q")
    return disk


def fields(error: StartError) -> tuple[int, str, str]:
    return error.status, error.text, error.setting


def store(disk: MemoryDisk, path: str, data: bytes) -> None:
    file = disk.create(path)
    file.write_at(0, [data])
    file.sync()
    disk.sync_directory("/q")


def test_a_mark_is_one_line() -> None:
    assert encode_mark(OURS) == b"clustered 1\n"
    assert decode_mark(b"log 12\n") == Mark("log", 12)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"clustered 1",
        b"clustered 1\n\n",
        b"clustered 0\n",
        b"clustered\n",
        b"Log 1\n",
        b"a 01\n",
        b" 1\n",
        b"a 1\nb 2\n",
    ],
)
def test_anything_else_is_no_mark(data: bytes) -> None:
    assert decode_mark(data) is None


def test_a_mark_is_durable_once_it_is_written(disk: MemoryDisk) -> None:
    write_mark(disk, "/q", OURS)
    disk.power_cut()
    assert read_mark(disk, "/q") == OURS
    assert not disk.exists(NEW_PATH)


def test_a_crash_leaves_no_mark_or_a_whole_one_and_the_next_start_is_not_hindered() -> None:
    def write(disk: TreeDisk) -> None:
        write_mark(disk, "/q", OURS)

    def ensure(disk: TreeDisk) -> None:
        ensure_mark(disk, "/q", OURS)

    for act in (write, ensure, behind_one_who_was_killed(ensure)):
        for tree, has_returned in moments(lambda disk: disk.make_directory("/q"), act):
            disk = TreeDisk(tree)
            assert read_mark(disk, "/q") in ((OURS,) if has_returned else (None, OURS))
            ensure_mark(disk, "/q", OURS)
            assert read_mark(disk, "/q") == OURS
            assert not disk.exists(NEW_PATH)


def test_bytes_are_durable_before_the_name(disk: MemoryDisk) -> None:
    write_mark(disk, "/q", OURS)
    acts = [act for act, path in disk.acts if path in (PATH, NEW_PATH, "/q")]
    assert acts.index("write") < acts.index("sync") < acts.index("rename") < acts.index("sync directory")


def test_a_mark_that_is_there_is_left_and_made_durable(disk: MemoryDisk) -> None:
    write_mark(disk, "/q", OURS)
    disk.durable_names.pop(PATH)  # the start that wrote it was killed before its last act
    ensure_mark(disk, "/q", OURS)
    disk.power_cut()
    assert read_mark(disk, "/q") == OURS


def test_a_temporary_file_that_is_left_is_no_hindrance(disk: MemoryDisk) -> None:
    store(disk, NEW_PATH, b"clus")
    ensure_mark(disk, "/q", OURS)
    assert read_mark(disk, "/q") == OURS
    assert not disk.exists(NEW_PATH)


@pytest.mark.parametrize("data", [b"", b"clus", b"clustered 1\n" + b"x" * 200])
def test_a_damaged_mark_is_refused_and_left(disk: MemoryDisk, data: bytes) -> None:
    store(disk, PATH, data)
    with pytest.raises(Corrupt):
        read_mark(disk, "/q")
    with pytest.raises(StartError, match="fsck --repair writes it again") as refused:
        ensure_mark(disk, "/q", OURS)
    assert refused.value.status == 65
    assert disk.content_of(PATH) == data


def test_what_is_no_file_is_no_mark(disk: MemoryDisk) -> None:
    disk.make_directory(PATH)
    with pytest.raises(Corrupt, match="it is a directory"):
        read_mark(disk, "/q")


def test_where_there_is_no_directory_there_is_no_mark() -> None:
    assert read_mark(MemoryDisk(), "/q") is None


def test_the_mark_of_another_provider_is_refused_with_the_setting_and_left(disk: MemoryDisk) -> None:
    store(disk, PATH, b"log 1\n")
    with pytest.raises(StartError) as refused:
        ensure_mark(disk, "/q", OURS)
    text = '<queue provider> is "clustered", but /q holds a queue of provider log: write that, or another <rootpath>'
    assert fields(refused.value) == (78, text, "mta/queue/@provider")
    assert disk.content_of(PATH) == b"log 1\n"


def test_a_newer_format_is_refused_and_left(disk: MemoryDisk) -> None:
    store(disk, PATH, b"clustered 3\n")
    with pytest.raises(StartError) as refused:
        ensure_mark(disk, "/q", Mark("clustered", 2))
    text = "queue /q is of format 3, written by a newer Mailismus; this one reads 1 and 2: start that one"
    assert fields(refused.value) == (65, text, "")
    assert disk.content_of(PATH) == b"clustered 3\n"


def test_a_start_of_a_higher_format_raises_the_mark(disk: MemoryDisk) -> None:
    store(disk, PATH, b"clustered 1\n")
    ensure_mark(disk, "/q", Mark("clustered", 2))
    disk.power_cut()
    assert disk.content_of(PATH) == b"clustered 2\n"


def test_an_older_format_may_be_refused_too() -> None:
    with pytest.raises(StartError, match="is of format 1, written by an older Mailismus; this one reads 2: start that one"):
        refuse_other(Mark("log", 1), "log", (2,), "/q")


def test_a_mark_is_printed_readably(tmp_path: Path) -> None:
    out = io.StringIO()
    (tmp_path / MARK).write_text("log 7\n")
    dump_mark(str(tmp_path / MARK), out)
    assert out.getvalue() == "mark of a queue of provider log, format 7\n"
    with pytest.raises(FileNotFoundError):
        dump_mark(str(tmp_path / "x" / MARK), out)


# The start of a clustered queue


def test_a_start_marks_its_queue_before_anything_is_written_there() -> None:
    harness = ClusteredHarness()
    harness.open()
    acts = harness.disk.acts
    first = next(at for at, (act, path) in enumerate(acts) if act in ("create", "write") and path.startswith("/q/journal"))
    marked = acts.index(("rename", NEW_PATH))
    assert marked < acts.index(("sync directory", "/q"), marked) < first
    harness.disk.power_cut()
    assert harness.disk.content_of(PATH) == b"clustered 2\n"


def test_a_queue_of_an_older_version_is_marked_by_its_next_start_before_damage_is_set_aside() -> None:
    harness = ClusteredHarness()
    bench = Bench(harness, harness.make())
    for _ in range(2):
        bench.put()
    harness.disk.unlink(PATH)
    harness.disk.kill()
    harness.disk.damage("/q/journal/00000001.mqj", 2 * 4096 + 60, b"\xff" * 8)
    harness.clock.calls.clear()
    harness.disk.acts.clear()
    harness.open()
    assert harness.disk.content_of(PATH) == b"clustered 2\n"
    acts = harness.disk.acts
    kept = [at for at, (act, path) in enumerate(acts) if act == "create" and path.startswith("/q/corrupt/")]
    assert kept
    assert acts.index(("rename", NEW_PATH)) < kept[0]


@pytest.mark.parametrize(("data", "status"), [(b"log 1\n", 78), (b"clustered 3\n", 65), (b"clus", 65)])
def test_a_start_refuses_what_is_another_s_or_newer_and_changes_nothing(data: bytes, status: int) -> None:
    harness = ClusteredHarness()
    harness.wait(harness.open().close())
    harness.clock.calls.clear()
    harness.disk.unlink(PATH)
    store(harness.disk, PATH, data)
    before = {name: harness.disk.content_of(name) for name in harness.disk.names}
    with pytest.raises(StartError) as refused:
        harness.open()
    assert refused.value.status == status
    assert {name: harness.disk.content_of(name) for name in harness.disk.names} == before
    assert harness.disk.locks == set()


def test_a_queue_from_before_the_areas_of_acts_gets_them_and_may_not_lose_them_then() -> None:
    harness = ClusteredHarness()
    harness.wait(harness.open().close())
    for name in ("hold", "deleted"):
        harness.disk.directories.discard(f"/q/{name}")
    harness.clock.calls.clear()
    with pytest.raises(StartError, match="/q/hold is gone"):
        harness.open()
    harness.disk.unlink(PATH)
    store(harness.disk, PATH, b"clustered 1\n")
    harness.open()
    assert {"/q/hold", "/q/deleted"} <= harness.disk.directories
    assert harness.disk.content_of(PATH) == b"clustered 2\n"


@pytest.mark.parametrize("is_old", [True, False])
def test_a_full_disk_keeps_no_queue_of_an_older_version_from_starting(is_old: bool) -> None:
    harness = ClusteredHarness()
    if is_old:
        harness.wait(harness.open().close())
        harness.clock.calls.clear()
        harness.disk.unlink(PATH)
    full = OSError(errno.ENOSPC, "No space left on device")
    harness.disk.fault = lambda act, path: full if act == "create" and path == NEW_PATH else None
    if is_old:
        harness.open()
    else:
        with pytest.raises(StartError) as refused:
            harness.open()
        assert refused.value.status == 74


@pytest.mark.parametrize(
    ("data", "status", "text"),
    [
        (b"clus", 65, "no directory of a clustered queue is beside it: restore this file from a copy"),
        (b"log 1\n", 78, "holds a queue of provider log"),
        (b"clustered 3\n", 65, "written by a newer Mailismus"),
    ],
)
def test_a_start_makes_no_directory_where_a_mark_refuses_it(data: bytes, status: int, text: str) -> None:
    harness = ClusteredHarness()
    harness.disk.make_directory("/q")
    store(harness.disk, PATH, data)
    directories = set(harness.disk.directories)
    with pytest.raises(StartError, match=text) as refused:
        harness.open()
    assert refused.value.status == status
    assert set(harness.disk.directories) == directories
    assert set(harness.disk.names) == {PATH}
