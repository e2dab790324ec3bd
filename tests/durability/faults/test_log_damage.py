"""Bytes of the log go wrong: a start goes on, what is not damaged is there, and what is lost is set aside and told of."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from mailismus.errors import StorageError
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.log.format.positions import BLOCK, NAME
from tests.durability.faults.case import Log
from tests.durability.faults.disk import FaultyDisk
from tests.durability.faults.log_damage import IMAGES, LogImage, Stroke, marked, strokes
from tests.durability.faults.world import Broken, World

ORDINARY = 40
"""Damages of one image in the ordinary run."""


def check(image: LogImage, stroke: Stroke) -> None:
    """A start over it, and one more."""
    disk = image.disk()
    stroke.do(disk)
    told: set[str] = set()
    hit = image.entries_in(stroke.path, stroke.offset, stroke.end(image)) if stroke.path in image.segments() else frozenset()
    spool_ids = {int(queue_id.spool_id) for queue_id in hit}
    for _ in range(2):
        with Log() as log:
            world = image.start(disk)
            unreadable = look(image, world)
            world.later(15)
            assert not log.failures, log.failures[0]
        told |= log.warnings
        lost = image.live - entries_of(world)
        if lost - hit:
            raise Broken(f"lost, and not damaged: {sorted(map(str, lost - hit))}")
        if unreadable - spool_ids and stroke.path in image.segments():
            raise Broken(f"can't be read, and is not damaged: {unreadable - spool_ids}")
        if (lost or unreadable) and not told and not image.is_last_head(stroke):
            raise Broken("lost, and not a word of it in the log")
        if lost and not set_aside(disk) and not image.is_in_last(stroke):
            raise Broken("lost, and nothing is set aside")
        world.cut()


def entries_of(world: World) -> set[QueueId]:
    """Every entry that the queue tells of: one whose old mark is damaged is told of twice until it is due."""
    page = world.harness.wait(world.running().search(Filter(), None, 10_000))
    assert page.cursor is None
    return {QueueId(message.spool_id, entry.number) for message in page.messages for entry in message.entries}


def look(image: LogImage, world: World) -> set[int]:
    """Read everything; gives the messages that can't be read."""
    world.settle_down(0.5)
    unreadable = set()
    for spool_id in {queue_id.spool_id for queue_id in entries_of(world)}:
        letter = image.world.letters.get(spool_id)
        assert letter is not None, "an entry that nobody sent"
        try:
            assert world.read(spool_id) == letter.content, "other bytes than were sent"
        except StorageError:
            unreadable.add(int(spool_id))
    for area in Area:
        for message in world.take(area, 100):
            assert world.manager is not None
            world.manager.give_back(message, message.entries, 0.0)
    return unreadable


def set_aside(disk: FaultyDisk) -> list[str]:
    return [name for name in disk.names if name.startswith("/q/corrupt/")]


def run_all(image: LogImage, found: Iterable[Stroke]) -> int:
    count = 0
    for stroke in found:
        try:
            check(image, stroke)
        except Exception as error:
            raise AssertionError(f"{stroke.path} {stroke.offset}:{stroke.end(image)} {stroke.data[:9]!r}") from error
        count += 1
    return count


@pytest.mark.parametrize("make", IMAGES, ids=lambda one: one.__name__)
def test_damage_costs_only_what_is_damaged_and_is_told(make: Callable[[], LogImage]) -> None:
    image = make()
    chance = random.Random(make.__name__)
    assert run_all(image, chance.sample(list(strokes(image, chance)), ORDINARY)) == ORDINARY


@pytest.mark.exhaustive
@pytest.mark.parametrize("make", IMAGES, ids=lambda one: one.__name__)
def test_no_damage_costs_more_than_what_is_damaged(make: Callable[[], LogImage]) -> None:
    image = make()
    count = run_all(image, strokes(image, random.Random(make.__name__)))
    print(f"{count} damages")
    assert count > 500


def test_positions_that_are_lost_twice_are_no_gap() -> None:
    """Segments were freed: without positions their batches look as if they were missing."""
    image = marked()
    assert f"/q/{NAME}" in image.files
    for stroke in (Stroke(f"/q/{NAME}", 0, bytes(2 * BLOCK)), Stroke(f"/q/{NAME}", 0, b"", is_cut=True)):
        disk = image.disk()
        stroke.do(disk)
        with Log() as log:
            world = image.start(disk)
            world.later(15)
        assert entries_of(world) >= image.live
        assert [name.split("-")[0] for name in set_aside(disk)] == ["/q/corrupt/positions"]
        assert len(log.warnings) == 1
        world.cut()
        with Log() as log:
            assert entries_of(image.start(disk)) >= image.live
        assert not log.warnings
