"""Which writes may come as one: the database refuses batches over several partitions that are large. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mailismus.queue.providers.distributed.format.tables import DELETED, DUE, ENQUEUED, MAILS
from mailismus.queue.providers.distributed.stores.rows import Key, Put, Write

BATCH_BYTES = 40 * 1024
"""Of a batch over several partitions: Cassandra refuses 50 KiB, unless it was told otherwise."""
_EACH = 100
_ORDER = (MAILS, ENQUEUED, DELETED, DUE)


def size_of(write: Write) -> int:
    """About how many bytes a write has."""
    if not isinstance(write, Put):
        return _EACH
    return _EACH + sum(len(value) if isinstance(value, bytes | str) else 8 for value in write.cells.values())


def as_one(writes: Sequence[Write]) -> bool:
    """Whether they can come by one call."""
    return sum(map(size_of, writes)) <= BATCH_BYTES or len({_partition(write) for write in writes}) == 1


def in_turn(writes: Sequence[Write]) -> Iterator[Sequence[Write]]:
    """What is written by a call each, one after the other: all as one if they can; otherwise a partition each: where the
    shares are, the shares, and then what has them delivered."""
    if as_one(writes):
        yield writes
        return
    partitions: dict[tuple[str, Key], list[Write]] = {}
    for write in sorted(writes, key=lambda one: _ORDER.index(one.table)):
        partitions.setdefault(_partition(write), []).append(write)
    yield from partitions.values()


def _partition(write: Write) -> tuple[str, Key]:
    return write.table.name, write.key[: write.table.key_size] if isinstance(write, Put) else write.partition
