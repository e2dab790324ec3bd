"""A digest of all that lies in the stores, to know equal states by."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from tests.distributed.world import EmptyWorld


def digest_of(world: EmptyWorld, *beside: object) -> bytes:
    """Of the stores, of the time, and of what counts beside."""
    digest = blake2b(repr((world.clock.seconds(), beside)).encode(), digest_size=16)
    for line in sorted((*_rows(world), *_triggers(world), *_contents(world))):
        digest.update(line.encode())
    return digest.digest()


def _rows(world: EmptyWorld) -> Iterator[str]:
    for name, partitions in world.rows.tables.items():
        for key, partition in partitions.items():
            yield repr((name, key, partition.erased_at))
            for place, row in partition.rows.items():
                yield repr((name, key, place, row.made, sorted(row.cells.items(), key=lambda cell: cell[0])))


def _triggers(world: EmptyWorld) -> Iterator[str]:
    for name, queue in world.broker.queues.items():
        yield repr((name, list(queue.waiting), [list(one.held.items()) for one in queue.consumers]))


def _contents(world: EmptyWorld) -> Iterator[str]:
    for key, data in (world.objects.objects or {}).items():
        yield repr((key, data))
