"""A start of the log-structured queue that is killed at any step is nothing that the next one minds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.durability.faults.disk import FaultyDisk, Killed
from tests.durability.faults.log_damage import IMAGES, LogImage, SmallLog
from tests.durability.faults.world import World


def start_and_die(image: LogImage, disk: FaultyDisk, at: int) -> bool:
    """Whether the start, and some time beside reception, came so far."""
    world = World(SmallLog(), disk=disk)
    world.letters, world.gone = image.world.letters, set(image.world.gone)
    disk.dies_at = len(disk.calls) + at
    try:
        world.start()
        world.settle_down(3)
        world.checkpoint()
    except Killed:
        return True
    finally:
        world.harness.clock.calls.clear()
    return False


def kill_everywhere(image: LogImage, first: int, step: int) -> int:
    """A kill and a power cut in turn at every so many calls; gives how many. Afterwards all is there."""
    count = 0
    at = first
    while True:
        disk = image.disk()
        if not start_and_die(image, disk, at):
            return count
        (disk.kill if count % 2 else disk.power_cut)()
        for _ in range(2):
            world = image.start(disk)
            assert world.live().keys() == image.live, f"killed at call {at}"
            world.cut()
        count += 1
        at += step


@pytest.mark.parametrize("make", IMAGES, ids=lambda one: one.__name__)
def test_a_start_that_is_killed_costs_nothing(make: Callable[[], LogImage]) -> None:
    assert kill_everywhere(make(), 3, 7) > 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("make", IMAGES, ids=lambda one: one.__name__)
def test_no_kill_of_a_start_costs_anything(make: Callable[[], LogImage]) -> None:
    print(f"{kill_everywhere(make(), 1, 1)} kills")
