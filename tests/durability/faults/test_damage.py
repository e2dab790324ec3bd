"""One byte of any file goes wrong: the start goes on, all else is there, and what is not is set aside and told of."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from mailismus.errors import StorageError
from mailismus.journal.batch import decode_batch, decode_header
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.spool.silo import message_path
from tests.durability.faults.case import Log
from tests.durability.faults.damage import IMAGES, Damage, Image, damages, resting
from tests.durability.faults.disk import FaultyDisk
from tests.durability.faults.world import Broken, World

ORDINARY = 12
"""Damages of one image in the ordinary run."""


def check(image: Image, damage: Damage) -> None:
    """A start over it, and one more."""
    disk = image.disk()
    damage.do(disk)
    is_told = False
    for _ in range(2):
        with Log() as log:
            world = image.start(disk)
            unreadable = look(image, world)
            world.settle_down()
            assert not log.failures, log.failures[0]
        is_told = is_told or bool(log.warnings)
        lost = image.live - set(world.live())
        messages = {queue_id.spool_id for queue_id in lost} | unreadable
        if len(messages) > 1:
            raise Broken(f"more than one message is hit: {sorted(map(str, lost))}, unreadable {unreadable}")
        if messages and not is_told:
            raise Broken("lost, and not a word of it in the log")
        if lost and not set_aside(disk) and not is_last_batch(image, damage):
            raise Broken("lost, and nothing is set aside")
        if unreadable and not set_aside(disk):
            raise Broken("a message file does not check, and is not set aside")
        if not lost and not unreadable:
            nobody_is_served_wrongly(world)
        world.cut()


def look(image: Image, world: World) -> set[int]:
    """Read everything; gives the messages that can't be read."""
    world.settle_down(0.1)
    unreadable = set()
    for spool_id in {queue_id.spool_id for queue_id in world.live()}:
        letter = image.world.letters.get(spool_id)
        assert letter is not None, "an entry that nobody sent"
        try:
            assert world.read(spool_id) == letter.content, "other bytes than were sent"
        except StorageError:
            unreadable.add(int(spool_id))
    for area in Area:  # a taking reads the clusters, and tells of lines that do not check
        for message in world.take(area, 100):
            assert world.manager is not None
            world.manager.give_back(message, message.entries, 0.0)
    return unreadable


def nobody_is_served_wrongly(world: World) -> None:
    for spool_id, number in world.live():
        letter = world.letters[spool_id]
        assert 1 <= number <= letter.count
        if letter.is_acknowledged and QueueId(spool_id, number) in world.gone:
            world.was_in_doubt = True  # a settle that is damaged: delivered twice, rather than lost


def set_aside(disk: FaultyDisk) -> list[str]:
    return [name for name in disk.names if name.startswith("/q/corrupt/")]


def is_last_batch(image: Image, damage: Damage) -> bool:
    """A last batch that is damaged looks like one that a crash tore: it is told of, its bytes stay where they are."""
    if not damage.path.endswith(".mqj"):
        return False
    content = image.files[damage.path]
    header = decode_header(content[:4096])
    if header is None:
        return False
    behind = range(damage.offset // 4096 * 4096 + 4096, len(content), 4096)
    return not any(decode_batch(content, at, header.nonce) for at in behind)


def run_all(image: Image, found: Iterable[Damage]) -> int:
    count = 0
    for damage in found:
        try:
            check(image, damage)
        except Exception as error:
            raise AssertionError(str(damage)) from error
        count += 1
    return count


MAKERS = [(make, hardlinks) for make in IMAGES for hardlinks in (False, True)]
NAMES = [f"{make.__name__}-{'linked' if hardlinks else 'counted'}" for make, hardlinks in MAKERS]


@pytest.mark.parametrize(("make", "hardlinks"), MAKERS, ids=NAMES)
def test_a_damaged_byte_costs_one_message_at_most(make: Callable[[bool], Image], hardlinks: bool) -> None:
    image = make(hardlinks)
    chance = random.Random(f"{make.__name__} {hardlinks}")
    assert run_all(image, chance.sample(list(damages(image, chance)), ORDINARY)) == ORDINARY


@pytest.mark.exhaustive
@pytest.mark.parametrize(("make", "hardlinks"), MAKERS, ids=NAMES)
def test_no_damaged_byte_costs_more_than_one_message(make: Callable[[bool], Image], hardlinks: bool) -> None:
    image = make(hardlinks)
    count = run_all(image, damages(image, random.Random(f"{make.__name__} {hardlinks}")))
    print(f"{count} damages")
    assert count > 500


def every_offset(image: Image, what: bytes) -> list[Damage]:
    """The places of these bytes in the journal, the newest ones."""
    path, content = max(item for item in image.files.items() if item[0].endswith(".mqj") and what in item[1])
    start = content.rindex(what)
    return [Damage(path, at, content[at] ^ 0xFF) for at in range(start, start + len(what))]


@pytest.mark.parametrize("make", IMAGES[1:], ids=lambda one: one.__name__)
def test_a_damaged_checkpoint_record_loses_no_entry_and_doubles_none(make: Callable[[bool], Image]) -> None:
    image = make(False)
    for damage in every_offset(image, b" checkpoint "):
        disk = image.disk()
        damage.do(disk)
        for _ in range(2):
            world = image.start(disk)
            assert world.live().keys() == image.live
            world.cut()
        world = image.start(disk)
        world.checkpoint()
        world.later(30)
        assert world.live().keys() == image.live
        world.cut()
        assert image.start(disk).live().keys() == image.live


@pytest.mark.parametrize("make", IMAGES, ids=lambda one: one.__name__)
def test_a_damaged_header_loses_no_entry_and_no_spool_id_is_used_twice(make: Callable[[bool], Image]) -> None:
    image = make(False)
    used = set(image.world.letters)
    for path, content in image.files.items():
        if content.startswith(b"MQJ-"):
            for offset in range(0, 68, 5):
                disk = image.disk()
                Damage(path, offset, content[offset] ^ 0xFF).do(disk)
                world = image.start(disk)
                assert world.live().keys() == image.live, (path, offset)
                assert world.running().draft().spool_id not in used


def test_what_a_damaged_line_belonged_to_is_set_aside_with_it() -> None:
    image = resting(False)
    path = next(path for path in image.files if path.endswith(".mqc"))
    lines = image.files[path].split(b"\n")
    spool_id = next(line.split()[1] for line in lines[1:] if b" 1/1 " in line)
    disk = image.disk()
    Damage(path, image.files[path].index(spool_id + b" 1/1 ") + 18, ord("9")).do(disk)
    for _ in range(2):
        world = image.start(disk)
        world.settle_down(2)
        while world.take_all():
            pass
        world.later(30)
        world.stop()
    assert not [name for name in disk.names if name.endswith(".mqc")]
    assert image.files[f"/s/{int(spool_id, 16) % 32:02x}/{spool_id.decode()}.msg"] in [
        disk.content_of(one) for one in set_aside(disk)
    ]


def test_a_message_file_that_does_not_check_is_set_aside_once() -> None:
    image = resting(False)
    spool_id = next(iter(image.live)).spool_id
    disk = image.disk()
    Damage(message_path("/s", spool_id), 20, 0).do(disk)
    world = image.start(disk)
    world.settle_down(2)
    with Log() as log:
        for _ in range(3):
            assert len(look(image, world)) == 1
            world.settle_down(0.1)
    assert len(set_aside(disk)) == 1
    assert len(log.warnings) == 1
