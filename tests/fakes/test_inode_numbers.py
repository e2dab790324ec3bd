"""The test disks give the number of a file that is gone to the next file, as real file systems do."""

from __future__ import annotations

import pytest

from tests.durability.crash.disk import TreeDisk
from tests.durability.faults.disk import FaultyDisk
from tests.fakes.disk import MemoryDisk


@pytest.fixture(params=[MemoryDisk, FaultyDisk, TreeDisk])
def disk(request: pytest.FixtureRequest) -> MemoryDisk | TreeDisk:
    disk: MemoryDisk | TreeDisk = request.param()
    disk.make_directory("/q")
    return disk


def number_of(disk: MemoryDisk | TreeDisk, path: str) -> tuple[int, int]:
    return disk.describe(path).inode


def test_a_number_is_given_again_when_the_file_is_gone_and_closed(disk: MemoryDisk | TreeDisk) -> None:
    file = disk.create("/q/a")
    first = number_of(disk, "/q/a")
    disk.unlink("/q/a")
    disk.create("/q/b").close()
    assert number_of(disk, "/q/b") != first
    file.close()
    disk.create("/q/c").close()
    assert number_of(disk, "/q/c") == first


def test_a_file_with_another_name_keeps_its_number(disk: MemoryDisk | TreeDisk) -> None:
    disk.create("/q/a").close()
    first = number_of(disk, "/q/a")
    disk.link("/q/a", "/q/b")
    disk.unlink("/q/a")
    disk.rename("/q/b", "/q/c")
    disk.create("/q/d").close()
    assert number_of(disk, "/q/c") == first
    assert number_of(disk, "/q/d") != first


def test_a_file_that_another_one_replaces_is_gone(disk: MemoryDisk | TreeDisk) -> None:
    disk.create("/q/a").close()
    first = number_of(disk, "/q/a")
    disk.create("/q/b").close()
    disk.rename("/q/b", "/q/a")
    disk.create("/q/c").close()
    assert number_of(disk, "/q/c") == first


def test_a_process_that_is_gone_holds_no_number(disk: MemoryDisk | TreeDisk) -> None:
    file = disk.create("/q/a")
    first = number_of(disk, "/q/a")
    disk.unlink("/q/a")
    disk.kill()
    disk.create("/q/b").close()
    assert number_of(disk, "/q/b") == first
    file.close()
    disk.create("/q/c").close()
    assert number_of(disk, "/q/c") != first
