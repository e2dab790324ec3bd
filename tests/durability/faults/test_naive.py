"""The fault cases catch a provider whose outcomes stand in memory alone."""

from __future__ import annotations

import errno

import pytest

from tests.durability.faults.__main__ import main
from tests.durability.faults.case import nothing_is_lost
from tests.durability.faults.disk import Fault, FaultyDisk, Span
from tests.durability.faults.world import Broken, World
from tests.durability.subjects.naive import NAIVE


def test_the_command_tells_what_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--provider", "naive"]) == 1
    assert capsys.readouterr().out == "nothing fails: BROKEN: delivered twice\n"


def test_mail_that_a_power_cut_takes_is_missed() -> None:
    world = World(NAIVE)
    world.start()
    assert world.store(2)
    world.cut()
    with pytest.raises(Broken, match="lost: "):
        nothing_is_lost(world)


def test_a_write_that_fails_is_refused_and_leaves_its_file() -> None:
    disk = FaultyDisk()
    world = World(NAIVE, disk=disk)
    world.start()
    disk.plan = Fault(len(disk.calls) + 2, errno.EIO, Span.ONCE)
    assert not world.store(1)
    assert disk.met is not None
    assert disk.met[0] == "write"
    assert world.idle_files()
