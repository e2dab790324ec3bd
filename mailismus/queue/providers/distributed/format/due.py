"""Due rows: which share is to be published at a time, in slots of a minute. Pure.

*Rule*: the slot of a row is never before the time of its write. So a slot that has long passed gets no row any more.
"""

from __future__ import annotations

from uuid import UUID

import attrs

from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.format.tables import DUE
from mailismus.queue.providers.distributed.stores.rows import Key, Put, Row, kept_time

SLOT_S = 60
SHARD = 0
"""The only one: a slot of an area is one partition."""


@attrs.frozen
class DueShare:
    """A share, and when it is to be published. `is_given_back`: it was due before; who starts publishes it at once."""

    name: ShareName
    due_at: float
    is_given_back: bool = False

    @property
    def slot(self) -> float:
        """The slot of its row."""
        return slot_of(self.due_at)


def slot_of(at: float) -> float:
    """The slot that a time is in."""
    return slice_start(at, SLOT_S)


def slot_key(queue_name: str, slot: float) -> Key:
    """The partition of a slot."""
    return (queue_name, SHARD, slot)


def due_share(name: ShareName, due_at: float, now: float, *, is_given_back: bool = False) -> DueShare:
    """A share that is to be published at `due_at`, or at once."""
    return DueShare(name, kept_time(max(due_at, now)), is_given_back)


def due_row(due: DueShare, at: float) -> Put:
    """Its row. `at`: of the write."""
    place = due.name.place
    key = (*slot_key(place.queue_name, due.slot), due.due_at, due.name.enqueue_id)
    cells = {"slice_start": place.slice_start, "bucket": place.bucket, "given_back": int(due.is_given_back)}
    return Put(DUE, key, cells, at)


def due_share_of(row: Row) -> DueShare | None:
    """What a row says; None: it is malformed."""
    queue, start, bucket = row["queue_name"], row["slice_start"], row["bucket"]
    due_at, name = row["due_at"], row["enqueue_id"]
    if not (isinstance(queue, str) and isinstance(start, int | float) and isinstance(bucket, int)):
        return None
    if not (isinstance(due_at, int | float) and isinstance(name, UUID)):
        return None
    return DueShare(ShareName(SharePlace(queue, float(start), bucket), name), float(due_at), row["given_back"] == 1)
