"""Queues at rest, and every way in which one byte of them can go wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import attrs

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from tests.durability.faults.clustered import opened_of
from tests.durability.faults.disk import FaultyDisk
from tests.durability.faults.world import LARGE, World
from tests.fakes.disk import _Inode

BLOCK = 4096
HEADS = 72
"""Bytes at the beginning of a block of the journal of which each is tried: headers, heads of batches, first records."""
SAMPLES = 24
"""Places tried in what is longer."""
KINDS: tuple[Callable[[int], int], ...] = (lambda old: old ^ 0x01, lambda old: old ^ 0xFF, lambda old: 0)


@attrs.frozen
class Image:
    """What a queue's disk held when its power went, and what everybody knew then."""

    world: World
    files: dict[str, bytes]
    directories: frozenset[str]
    live: frozenset[QueueId]
    """Every entry that a start finds when nothing is damaged."""

    def disk(self) -> FaultyDisk:
        """A disk that holds it."""
        disk = FaultyDisk()
        disk.directories |= self.directories
        for path, content in self.files.items():
            inode = disk.names[path] = disk.durable_names[path] = _Inode()
            inode.data, inode.durable = bytearray(content), content
        return disk

    def start(self, disk: FaultyDisk) -> World:
        """A world over it, which knows what the other one did."""
        world = World(hardlinks=self.world.hardlinks, disk=disk)
        world.letters, world.gone = self.world.letters, set(self.world.gone)
        world.start_at_last()
        return world


def take_image(world: World) -> Image:
    """Cut its power."""
    world.cut()
    disk = world.disk
    image = Image(
        world, {path: inode.durable for path, inode in disk.names.items()}, frozenset(disk.directories), frozenset()
    )
    return attrs.evolve(image, live=frozenset(image.start(image.disk()).live()))


def begun(hardlinks: bool) -> World:
    world = World(hardlinks=hardlinks)
    world.start()
    return world


def young(hardlinks: bool) -> Image:
    """All in the journal, but for a large message."""
    world = begun(hardlinks)
    world.store(1)
    world.store(3)
    world.store(2, LARGE + 5000)
    world.store(1, 9000)
    world.deliver()
    world.defer(limit=2)
    world.store(1)
    return take_image(world)


def resting(hardlinks: bool) -> Image:
    """All written behind; the journal's last word is the checkpoint, and what it freed is used again or gone."""
    world = begun(hardlinks)
    world.store(1)
    world.store(3)
    world.checkpoint()
    world.store(2, LARGE + 5000)
    world.store(2)
    world.deliver(limit=2)
    world.defer(limit=2)
    world.burst(11, 95_000)
    world.checkpoint()
    _forget_free_segments(world)
    return take_image(world)


def both(hardlinks: bool) -> Image:
    """Some rests, some is young; an open cluster has grown; settles of resting entries are owed."""
    world = begun(hardlinks)
    world.store(3)
    world.store(2)
    world.checkpoint()
    world.store(3)
    world.burst(11, 95_000)
    world.checkpoint()
    _forget_free_segments(world)
    world.deliver(limit=2)
    world.defer(limit=2)
    world.fail()
    world.store(2)
    return take_image(world)


def restarted(hardlinks: bool) -> Image:
    """A start has used a segment again and said its last batch there; what came then stands behind it."""
    world = begun(hardlinks)
    world.store(3)
    world.burst(11, 95_000)
    world.checkpoint()
    world.store(2)
    world.kill()
    world.start_at_last()
    world.store(1)
    world.deliver(Area.INCOMING, 2)
    world.checkpoint()
    _forget_free_segments(world)
    world.store(1)
    return take_image(world)


IMAGES = (young, resting, both, restarted)


def _forget_free_segments(world: World) -> None:
    """As a running server does in time: the segments before the horizon hold something else."""
    for segment in opened_of(world).pool._free:
        inode = world.disk.names[segment.path]
        inode.data = bytearray(len(inode.data))
        inode.durable = bytes(inode.data)


@attrs.frozen
class Damage:
    """One byte."""

    path: str
    offset: int
    byte: int

    def do(self, disk: FaultyDisk) -> None:
        disk.damage(self.path, self.offset, bytes((self.byte,)))


def damages(image: Image, chance: random.Random) -> Iterator[Damage]:
    """Every file; every byte of what is short or tells how to read the rest, samples of the rest."""
    for path, content in image.files.items():
        if path.endswith("/lock") or not content.strip(b"\0"):
            continue
        for offset in sorted(_offsets(path, content, chance)):
            old = content[offset]
            byte = chance.choice(KINDS)(old)
            if byte != old and not (path.endswith(".mqc") and byte == ord("x")):
                yield Damage(path, offset, byte)


def _offsets(path: str, content: bytes, chance: random.Random) -> set[int]:
    end = len(content.rstrip(b"\0"))
    if not path.endswith(".mqj"):
        return {*range(min(end, 400)), *range(max(0, end - 60), end), *chance.sample(range(end), min(end, SAMPLES))}
    found = set(chance.sample(range(end), min(end, SAMPLES)))
    for block in range(0, end, BLOCK):
        if content.startswith((b"MQJB", b"MQJ-"), block):
            found.update(range(block, min(block + HEADS, end)))
    return found
