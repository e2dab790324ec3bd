"""Due rows: which share is to be published at a time, in slots of a minute. Pure.

*Rule*: the slot of a row is never before the time of its write. So a slot that has long passed gets no row any more.
"""

from __future__ import annotations

import enum
from uuid import UUID

import attrs

from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.format.tables import DUE
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.stores.rows import Key, Put, Row, kept_time

SLOT_S = 60
SHARD = 0
"""The only one: a slot of an area is one partition."""


class DueKind(enum.Enum):
    """Why a share waits. The values stand in rows."""

    WAITS = 0
    GIVEN_BACK = 1
    """It was due before: it is published at once when the writer of the row is gone."""
    INSTEAD = 2
    """The broker did not say whether it has a trigger of new mail."""


@attrs.frozen
class DueShare:
    """A share, and when it is to be published. `writer`: the epoch of the server that wrote the row."""

    name: ShareName
    due_at: float
    writer: int
    kind: DueKind = DueKind.WAITS

    @property
    def slot(self) -> float:
        """The slot of its row."""
        return slot_of(self.due_at)

    @property
    def key(self) -> tuple[float, UUID]:
        """Its place in the order of its slot."""
        return (self.due_at, self.name.enqueue_id)

    @property
    def trigger(self) -> bytes:
        """What is published."""
        is_suspect = self.kind is DueKind.INSTEAD
        return write_trigger(attrs.evolve(trigger_of(self.name), is_suspect=is_suspect, is_from_row=not is_suspect))


def slot_of(at: float) -> float:
    """The slot that a time is in."""
    return slice_start(at, SLOT_S)


def slot_key(queue_name: str, slot: float) -> Key:
    """The partition of a slot."""
    return (queue_name, SHARD, slot)


def due_share(name: ShareName, due_at: float, now: float, writer: int, kind: DueKind = DueKind.WAITS) -> DueShare:
    """A share that is to be published at `due_at`, or at once."""
    return DueShare(name, kept_time(max(due_at, now)), writer, kind)


def due_row(due: DueShare, at: float) -> Put:
    """Its row. `at`: of the write."""
    place = due.name.place
    cells = {
        "slice_start": place.slice_start,
        "bucket": place.bucket,
        "given_back": due.kind.value,
        "writer": due.writer,
    }
    return Put(DUE, (*slot_key(place.queue_name, due.slot), *due.key), cells, at)


def due_share_of(row: Row) -> DueShare | None:
    """What a row says; None: it is malformed."""
    queue, start, bucket = row["queue_name"], row["slice_start"], row["bucket"]
    due_at, name, writer = row["due_at"], row["enqueue_id"], row["writer"]
    if not (isinstance(queue, str) and isinstance(start, int | float) and isinstance(bucket, int)):
        return None
    if not (isinstance(due_at, int | float) and isinstance(name, UUID)):
        return None
    try:
        kind = DueKind(row["given_back"])
    except ValueError:
        return None
    share = ShareName(SharePlace(queue, float(start), bucket), name)
    return DueShare(share, float(due_at), writer if isinstance(writer, int) else 0, kind)
