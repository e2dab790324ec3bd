"""Queues of the log-structured provider at rest, and ways in which bytes of them go wrong.

Stretches of bytes are damaged too, not one byte alone: cut off, zeroed, or written over with others of the same file.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.journal.batch import BLOCK, decode_header
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.format.positions import NAME
from mailismus.queue.providers.log.format.record import GARBAGE
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch, envelopes_of
from tests.durability.faults.disk import FaultyDisk
from tests.durability.faults.world import World
from tests.durability.subjects.interface import LARGE
from tests.durability.subjects.log import LogSubject, _settings
from tests.fakes.disk import MemoryDisk, _Inode

HEADS = 64
"""Bytes at the beginning of a block of which each may be tried: headers, heads of batches, first records."""


class SmallLog(LogSubject):
    """With the smallest segments, whatever is large."""

    def settings(self, *, hardlinks: bool, large: int = LARGE) -> QueueSettings:
        return _settings(LARGE)


@attrs.frozen
class LogImage:
    """What a queue's disk held when its power went, and what everybody knew then."""

    world: World
    files: dict[str, bytes]
    directories: frozenset[str]
    live: frozenset[QueueId] = frozenset()
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
        world = World(SmallLog(), disk=disk)
        world.letters, world.gone = self.world.letters, set(self.world.gone)
        world.start_at_last()
        return world

    def segments(self) -> list[str]:
        """Paths of segments that were begun."""
        return [path for path in sorted(self.files) if path.endswith(".mqj") and self.files[path].startswith(b"MQJ-")]

    def entries_in(self, path: str, begin: int, end: int) -> frozenset[QueueId]:
        """Entries of all envelopes in batches of a segment that have a byte in this stretch."""
        found: set[QueueId] = set()
        for first, last, entries in self._batches(path):
            if first < end and last > begin:
                found |= entries
        return frozenset(found)

    def is_in_last(self, stroke: Stroke) -> bool:
        """Whether it damages the last batch of the log: that looks like one that a crash tore. It is told of, its bytes stay
        where they are."""
        path = self._last_segment()
        begin, end, _ = max(self._batches(path))
        return stroke.path == path and stroke.offset < end and stroke.end(self) > begin

    def is_last_head(self, stroke: Stroke) -> bool:
        """Whether all is gone that tells of the last batch: it looks as if it had never been written."""
        path = self._last_segment()
        begin, _, _ = max(self._batches(path))
        return stroke.path == path and stroke.offset <= begin + 20 and stroke.end(self) - stroke.offset > 1

    def _last_segment(self) -> str:
        """That of the highest number: a free one has an older number, and a name that sorts behind all others."""
        headers = {path: decode_header(self.files[path][:BLOCK]) for path in self.segments()}
        return max((header.number, path) for path, header in headers.items() if header is not None)[1]

    def _batches(self, path: str) -> Iterator[tuple[int, int, set[QueueId]]]:
        content = self.files[path]
        header = decode_header(content[:BLOCK])
        if header is None:
            return
        disk = MemoryDisk()
        disk.directories.add("/x")
        file = disk.create("/x/y")
        file.write_at(0, [content])
        reader = BatchReader(Stretch(file, header, BLOCK, len(content), 0, 1 << 60))
        while (batch := reader.next()) is not None:
            found = envelopes_of(batch, header.number, lambda _, record: True, [])
            entries = {QueueId(one.message.spool_id, entry.number) for one in found for entry in one.entries}
            yield batch.offset, batch.end, entries


def take_image(world: World) -> LogImage:
    """Cut its power."""
    world.cut()
    disk = world.disk
    files = {path: inode.durable for path, inode in disk.names.items()}
    image = LogImage(world, files, frozenset(disk.directories))
    return attrs.evolve(image, live=frozenset(image.start(image.disk()).live()))


def _begun() -> World:
    world = World(SmallLog())
    world.start()
    return world


def in_the_suffix() -> LogImage:
    """Nothing was marked yet."""
    world = _begun()
    world.store(1)
    world.store(3)
    world.store(2, 2 * LARGE)
    world.store(1, 5000)
    world.deliver()
    world.defer(limit=2)
    world.store(1)
    return take_image(world)


def marked() -> LogImage:
    """Several segments, with marks, positions, replacements, and segments that are free."""
    world = _begun()
    world.store(3)
    for _ in range(4):
        world.store(2, 5000)
        world.store(1, 3000)
        world.deliver(limit=1)
        world.defer(limit=1)
        world.checkpoint()
    world.deliver(limit=2)
    world.defer(limit=1)
    for _ in range(3):
        world.store(1, 5000)
        world.checkpoint()
    world.later(15)
    return take_image(world)


def started_again() -> LogImage:
    """A start has written its last batch again; what came then stands behind it, and was marked."""
    world = _begun()
    world.store(3)
    world.store(2, 5000)
    world.kill()
    world.start_at_last()
    world.deliver(limit=2)
    world.defer(limit=1)
    for _ in range(3):
        world.store(1, 5000)
        world.checkpoint()
    world.fail()
    world.kill()
    world.start_at_last()
    world.store(1)
    world.deliver(Area.INCOMING)
    world.later(15)
    return take_image(world)


IMAGES = (in_the_suffix, marked, started_again)


@attrs.frozen
class Stroke:
    """These bytes of a file are others; `is_cut`: it ends there."""

    path: str
    offset: int
    data: bytes
    is_cut: bool = False

    def do(self, disk: FaultyDisk) -> None:
        inode = disk.names[self.path]
        if self.is_cut:
            del inode.data[self.offset :]
            inode.durable = bytes(inode.data)
        else:
            disk.damage(self.path, self.offset, self.data)

    def is_change(self, image: LogImage) -> bool:
        content = image.files[self.path]
        if self.is_cut:
            return bool(content[self.offset :].strip(b"\0"))
        return content[self.offset : self.offset + len(self.data)] != self.data

    def end(self, image: LogImage) -> int:
        """Where what is damaged ends."""
        return len(image.files[self.path]) if self.is_cut else self.offset + len(self.data)


def strokes(image: LogImage, chance: random.Random) -> Iterator[Stroke]:
    """One byte of each kind and place, as it flips or is zeroed; and whole stretches. No byte becomes a mark: that is one
    outside of every CRC."""
    for path, content in image.files.items():
        if path.endswith(("/lock", "/provider")) or not content.strip(b"\0"):
            continue  # a mark that does not check refuses the start
        for offset in sorted(_offsets(path, content, chance)):
            old = content[offset]
            byte = chance.choice((old ^ 0x01, old ^ 0xFF, 0))
            if byte != old and byte != GARBAGE[0]:
                yield Stroke(path, offset, bytes((byte,)))
    for path in (*image.segments(), f"/q/{NAME}"):
        content = image.files.get(path, b"")
        end = len(content.rstrip(b"\0"))
        blocks = range(0, end, BLOCK)
        for block in blocks:
            other = chance.choice(blocks)
            for one in (
                Stroke(path, block, bytes(BLOCK)),
                Stroke(path, block, content[other : other + BLOCK]),
                Stroke(path, block + chance.randrange(BLOCK), b"", is_cut=True),
                Stroke(path, block + chance.randrange(BLOCK), chance.randbytes(chance.randrange(1, 6000))),
            ):
                if one.is_change(image) and one.end(image) <= len(content):
                    yield one


def _offsets(path: str, content: bytes, chance: random.Random) -> set[int]:
    end = len(content.rstrip(b"\0"))
    if not path.endswith(".mqj"):
        return {*range(min(end, 120)), *range(max(0, end - 60), end)}
    found = set(chance.sample(range(end), min(end, 24)))
    for block in range(0, end, BLOCK):
        if content.startswith((b"MQJM", b"MQJ-"), block):
            found.update(range(block, min(block + HEADS, end)))
    return found
