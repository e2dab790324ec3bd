"""Access point, write handler and unit of work: all phases count, or none."""

from __future__ import annotations

import errno

import pytest

from mailismus.chunks.access import TRIES, AccessPoint
from mailismus.chunks.generator import NameGenerator
from mailismus.chunks.names import InodeStrategy, PartStrategy
from mailismus.chunks.unit import WorkUnit
from tests.fakes.disk import MemoryDisk

NOW = 1_700_000_000.25


class Bench:
    def __init__(self) -> None:
        self.disk = MemoryDisk()
        for path in ("/q", "/q/made", "/q/done"):
            self.disk.make_directory(path)
        self.made, self.done = self.disk.open_directory("/q/made"), self.disk.open_directory("/q/done")
        self.names = PartStrategy("MPQ", b"h")
        self.access = AccessPoint(self.made, self.names, NameGenerator(lambda: 1))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_chunk_counts_when_it_is_finished_and_not_before(bench: Bench) -> None:
    chunk = bench.access.begin(NOW)
    chunk.write(b"one")
    chunk.write(b"")
    chunk.write(b"two")
    assert bench.done.names() == []
    chunk.finish(bench.done)
    chunk.abandon()
    assert bench.made.names() == []
    (name,) = bench.done.names()
    bench.disk.power_cut()
    assert bench.disk.content_of(f"/q/done/{name}") == b"onetwo"


def test_an_abandoned_chunk_leaves_nothing(bench: Bench) -> None:
    chunk = bench.access.begin(NOW)
    chunk.write(b"one")
    chunk.abandon()
    chunk.abandon()
    assert bench.made.names() == bench.done.names() == []


def test_a_name_that_is_taken_is_passed_over_a_few_times(bench: Bench) -> None:
    for number in range(1, TRIES + 1):
        bench.made.create(f"1700000000.M250000P1Q{number}.h").close()
    with pytest.raises(FileExistsError):
        bench.access.begin(NOW)
    assert bench.access.begin(NOW).made_name == f"1700000000.M250000P1Q{TRIES + 1}.h"


def test_a_name_that_comes_between_the_look_and_the_making_is_passed_over(bench: Bench) -> None:
    def race(act: str, path: str) -> OSError | None:
        return FileExistsError(errno.EEXIST, "exists") if act == "create" and path.endswith("Q1.h") else None

    bench.disk.fault = race
    assert bench.access.begin(NOW).made_name == "1700000000.M250000P1Q2.h"


def test_where_there_are_no_links_a_rename_takes_their_place_and_replaces_nothing(bench: Bench) -> None:
    bench.disk.fault = lambda act, path: OSError(errno.EPERM, "no links") if act == "link" else None
    chunk = bench.access.begin(NOW)
    chunk.write(b"one")
    chunk.finish(bench.done)
    assert bench.done.names() == [chunk.made_name]
    assert bench.made.names() == []
    taken = bench.access.begin(NOW)
    bench.done.create(taken.made_name).close()
    with pytest.raises(FileExistsError):
        taken.finish(bench.done)
    taken.abandon()
    assert bench.disk.content_of(f"/q/done/{taken.made_name}") == b""
    assert bench.made.names() == []


def test_a_link_that_failed_and_was_done_is_told_by_its_count(bench: Bench) -> None:
    def reply_lost(act: str, path: str) -> OSError | None:
        if act == "link":
            bench.disk.fault = None
            bench.disk.link(path.replace("/done/", "/made/"), path)
            return OSError(errno.EIO, "the reply was lost")
        return None

    chunk = bench.access.begin(NOW)
    bench.disk.fault = reply_lost
    chunk.finish(bench.done)
    assert bench.done.names() == [chunk.made_name]
    assert bench.made.names() == []


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_link_that_failed_is_not_taken_for_done_because_others_have_linked_the_file(bench: Bench, is_taken: bool) -> None:
    chunk = bench.access.begin(NOW)
    bench.disk.link(f"/q/made/{chunk.made_name}", "/q/made/a copy")
    if is_taken:
        bench.done.create(chunk.final_name()).close()
    bench.disk.fault = lambda act, path: OSError(errno.ENOSPC, "full") if act == "link" else None
    with pytest.raises(OSError, match="full"):
        chunk.finish(bench.done)
    chunk.abandon()
    assert bench.done.names() == ([chunk.final_name()] if is_taken else [])


def test_a_link_that_failed_fails_the_chunk(bench: Bench) -> None:
    chunk = bench.access.begin(NOW)
    bench.disk.fault = lambda act, path: OSError(errno.EIO, "EIO") if act == "link" else None
    with pytest.raises(OSError, match="EIO"):
        chunk.finish(bench.done)
    chunk.abandon()
    assert bench.made.names() == bench.done.names() == []


def test_a_file_may_count_under_the_number_of_its_inode() -> None:
    bench = Bench()
    chunk = AccessPoint(bench.made, InodeStrategy(), NameGenerator(lambda: 1)).begin(NOW)
    chunk.finish(bench.done)
    (name,) = bench.done.names()
    assert int(name) == bench.done.describe(name).inode[1]


def test_phases_are_undone_last_first_and_a_failed_phase_is_none() -> None:
    done: list[str] = []
    unit = WorkUnit()
    unit.do(lambda: done.append("a"), lambda: done.append("undo a"))
    unit.do(lambda: done.append("b"), lambda: done.append("undo b"))

    def fail() -> None:
        raise OSError(errno.EIO, "EIO")

    with pytest.raises(OSError, match="EIO"):
        unit.do(fail, lambda: done.append("never"))
    unit.undo()
    unit.undo()
    assert done == ["a", "b", "undo b", "undo a"]


def test_an_undo_that_fails_lets_the_others_run_and_a_commit_forgets_them() -> None:
    done: list[str] = []
    unit = WorkUnit()
    unit.do(lambda: None, lambda: done.append("first"))

    def fail() -> None:
        raise OSError(errno.EIO, "EIO")

    unit.do(lambda: None, fail)
    unit.undo()
    assert done == ["first"]
    unit.do(lambda: None, lambda: done.append("never"))
    unit.commit()
    unit.undo()
    assert done == ["first"]
