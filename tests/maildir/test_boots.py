"""The counter of boots: no number is given twice, whatever stops, and whoever else counts."""

from __future__ import annotations

import errno

import pytest

from mailismus.chunks.generator import NameGenerator
from mailismus.chunks.names import OldStrategy, PartStrategy
from mailismus.maildir.boots import NAME, STEP, BootSequence, read_boot_id
from mailismus.maildir.names import count_boots, strategy_of
from tests.fakes.disk import MemoryDisk

PATH = "/ms"


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory(PATH)
    return disk


def test_it_counts_from_0_after_each_boot(disk: MemoryDisk) -> None:
    first = BootSequence(disk, PATH, b"aa")
    assert [first.next() for _ in range(3)] == [(1, 0), (1, 1), (1, 2)]
    assert BootSequence(disk, PATH, b"bb").next() == (2, 0)
    assert BootSequence(disk, PATH, b"aa").next() == (3, 0)


def test_processes_of_one_boot_never_have_one_number(disk: MemoryDisk) -> None:
    one, other = BootSequence(disk, PATH, b"aa"), BootSequence(disk, PATH, b"aa")
    found = [sequence.next() for _ in range(STEP + 2) for sequence in (one, other)]
    assert len(set(found)) == len(found) == 2 * STEP + 4
    assert {boots for boots, _ in found} == {1}


@pytest.mark.parametrize("end", ["kill", "power_cut"])
def test_what_was_given_is_not_given_again_after_a_crash(disk: MemoryDisk, end: str) -> None:
    given = {BootSequence(disk, PATH, b"aa").next()}
    for _ in range(3):
        getattr(disk, end)()
        sequence = BootSequence(disk, PATH, b"aa")
        now = {sequence.next(), sequence.next()}
        assert given.isdisjoint(now)
        given |= now


@pytest.mark.parametrize("act", ["create", "write", "sync", "rename", "sync directory", "lock"])
def test_a_disk_that_fails_gives_no_number(disk: MemoryDisk, act: str) -> None:
    sequence = BootSequence(disk, PATH, b"aa")
    disk.fault = lambda one, path: OSError(errno.EIO, "EIO") if one == act else None
    with pytest.raises(OSError, match="EIO"):
        sequence.next()
    disk.fault = None
    first = sequence.next()
    assert first[0] == 1
    assert BootSequence(disk, PATH, b"aa").next() not in (first, (1, first[1] + 1))


def test_a_counter_that_another_process_holds_is_busy(disk: MemoryDisk) -> None:
    lock = disk.lock(f"{PATH}/{NAME}.lock")
    assert lock is not None
    with pytest.raises(OSError, match="another process counts"):
        BootSequence(disk, PATH, b"aa").next()
    lock.release()
    assert BootSequence(disk, PATH, b"aa").next() == (1, 0)


def test_a_counter_that_makes_no_sense_is_no_beginning(disk: MemoryDisk) -> None:
    file = disk.create(f"{PATH}/{NAME}")
    file.write_at(0, (b"7 20000",))
    with pytest.raises(OSError, match="makes no sense"):
        BootSequence(disk, PATH, b"aa").next()


def test_the_boot_has_an_id() -> None:
    assert len(read_boot_id()) == 36


def test_the_generator_counts_boots_only_for_names_that_have_them(disk: MemoryDisk) -> None:
    generator = NameGenerator(lambda: 42)
    count_boots(generator, "MPQ", disk, PATH)
    assert (generator.next(1.0).boots, generator.next(1.0).sequence) == (0, 0)
    assert disk.names == {}
    count_boots(generator, "#X", disk, PATH)
    stamps = [generator.next(1_700_000_000.0) for _ in range(2)]
    assert [(stamp.boots, stamp.sequence) for stamp in stamps] == [(1, 0), (1, 1)]
    assert strategy_of("#X", b"mx").made_name(stamps[1]) == "1700000000.#1X1.mx"
    assert strategy_of("n_m", b"mx").made_name(stamps[1]) == "1700000000.42_4.mx"


def test_strategies_are_those_of_the_configuration() -> None:
    assert isinstance(strategy_of("n_m", b"mx"), OldStrategy)
    assert isinstance(strategy_of("RIMPQ", b"mx"), PartStrategy)
