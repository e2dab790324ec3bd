"""A start that is killed at any step is nothing that the next one minds: it does all of that again, or need not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.durability.faults.damage import IMAGES, Damage, Image
from tests.durability.faults.disk import FaultyDisk, Killed
from tests.durability.faults.test_damage import every_offset
from tests.durability.faults.world import World


def start_and_die(image: Image, disk: FaultyDisk, at: int) -> bool:
    """Whether the start, and some time beside reception, came so far."""
    world = World(hardlinks=image.world.hardlinks, disk=disk)
    disk.dies_at = len(disk.calls) + at
    try:
        world.start()
        world.settle_down(3)
    except Killed:
        return True
    finally:
        world.harness.clock.calls.clear()
    return False


def kill_everywhere(image: Image, damage: Damage | None, first: int, step: int) -> int:
    """A kill and a power cut in turn at every so many calls; gives how many. Afterwards all is there."""
    count = 0
    at = first
    while True:
        disk = image.disk()
        if damage is not None:
            damage.do(disk)
        if not start_and_die(image, disk, at):
            return count
        (disk.kill if count % 2 else disk.power_cut)()
        for _ in range(2):
            world = image.start(disk)
            assert world.live().keys() == image.live, f"killed at call {at}"
            world.cut()
        count += 1
        at += step


@pytest.mark.parametrize("hardlinks", [False, True], ids=["counted", "linked"])
@pytest.mark.parametrize("make", IMAGES, ids=lambda one: one.__name__)
def test_a_start_that_is_killed_costs_nothing(make: Callable[[bool], Image], hardlinks: bool) -> None:
    assert kill_everywhere(make(hardlinks), None, 3, 17) > 5


@pytest.mark.parametrize("make", IMAGES[1:], ids=lambda one: one.__name__)
def test_a_start_over_a_damaged_checkpoint_that_is_killed_costs_nothing(make: Callable[[bool], Image]) -> None:
    image = make(False)
    assert kill_everywhere(image, every_offset(image, b" checkpoint ")[4], 120, 7) > 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("hardlinks", [False, True], ids=["counted", "linked"])
@pytest.mark.parametrize("make", IMAGES, ids=lambda one: one.__name__)
def test_no_kill_of_a_start_costs_anything(make: Callable[[bool], Image], hardlinks: bool) -> None:
    image = make(hardlinks)
    damages = [None] if make is IMAGES[0] else [None, every_offset(image, b" checkpoint ")[4]]
    print(f"{sum(kill_everywhere(image, damage, 1, 1) for damage in damages)} kills")
