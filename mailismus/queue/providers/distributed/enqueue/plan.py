"""What is written and published for a submission. Pure.

All shares of a message in one area and one slice are of one partition, so they come by one mutation. A share that is due
has a trigger; one that waits has a due row, which becomes a trigger at its time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import attrs

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message, Placement
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace, pieces_of, writes_of
from mailismus.queue.providers.distributed.format.slices import bucket_of, slice_start
from mailismus.queue.providers.distributed.format.tables import DUE, MAILS, PREFIX
from mailismus.queue.providers.distributed.format.trigger import ShareTrigger, write_trigger
from mailismus.queue.providers.distributed.stores.rows import Put, Row, Write, kept_time
from mailismus.queue.providers.distributed.view.change import ViewSettings

SLOT_S = 60
SHARDS = 1
TRIED = frozenset({Area.INCOMING, Area.DEFERRED, Area.BOUNCES})


@attrs.frozen
class Arrived:
    """A message that has arrived whole. `placements` None: each recipient is due at once."""

    spool_id: SpoolId
    envelope: Envelope
    received_at: float
    size_bytes: int
    blob: Blob
    placements: tuple[Placement, ...] | None = None


@attrs.frozen
class Publication:
    """A share's trigger, and the queue that it is for."""

    queue: str
    body: bytes
    share: Share


@attrs.frozen
class EnqueuePlan:
    """`shares` are durable by `writes`, before a trigger is published."""

    shares: tuple[Share, ...]
    writes: tuple[Write, ...]
    publications: tuple[Publication, ...]


def plan_enqueue(
    arrived: Arrived, view: ViewSettings, epoch_slice: float, now: float, new_id: Callable[[], UUID]
) -> EnqueuePlan:
    """The plan. `now`: UTC seconds, from which the slice is computed. `epoch_slice`: where its epoch's messages begin."""
    now = kept_time(now)
    start = slice_start(now, view.slice_window_s)
    bucket = bucket_of(arrived.spool_id, view.bucket_count)
    shares = []
    for (area, due_at), entries in _groups(arrived).items():
        for piece in pieces_of(entries):
            name = ShareName(SharePlace(area.value, start, bucket), new_id())
            shares.append(Share(name, _message(arrived, piece), arrived.blob, now, due_at))
    writes: list[Write] = [write for share in shares for write in writes_of(share, now)]
    if len(shares) > 1 or start != epoch_slice:
        writes += [_index_row(share, now) for share in shares]
    publications = []
    for share in shares:
        if share.due_at > now or Area(share.name.place.queue_name) not in TRIED:
            writes.append(due_row(share, share.due_at, now))
        else:
            publications.append(_publication(share))
    return EnqueuePlan(tuple(shares), tuple(writes), tuple(publications))


def due_row(share: Share, due_at: float, at: float) -> Put:
    """The row that has a share published at a time. `at`: of the write."""
    name = share.name
    slot = slice_start(due_at, SLOT_S)
    key = (name.place.queue_name, bucket_of(share.message.spool_id, SHARDS), slot, due_at, name.enqueue_id)
    return Put(DUE, key, {"slice_start": name.place.slice_start, "bucket": name.place.bucket}, at)


def _groups(arrived: Arrived) -> dict[tuple[Area, float], list[Entry]]:
    groups: dict[tuple[Area, float], list[Entry]] = {}
    for entry in _entries(arrived):
        groups.setdefault((entry.area, entry.due_at), []).append(entry)
    return groups


def _entries(arrived: Arrived) -> list[Entry]:
    recipients = arrived.envelope.recipients
    if arrived.placements is None:
        due_at = kept_time(arrived.received_at)
        return [Entry(number, recipient, Area.INCOMING, due_at) for number, recipient in enumerate(recipients, 1)]
    return [
        Entry(
            one.number,
            recipients[one.number - 1],
            one.area,
            kept_time(one.due_at),
            one.attempts,
            one.reply,
            one.host,
            one.words,
        )
        for one in arrived.placements
    ]


def _entry(one: Placement, recipient: bytes) -> Entry:
    due_at = kept_time(one.due_at)
    return Entry(one.number, recipient, one.area, due_at, one.attempts, one.reply, one.host, one.words)


def _message(arrived: Arrived, entries: Sequence[Entry]) -> Message:
    envelope = arrived.envelope
    return Message(
        spool_id=arrived.spool_id,
        sender=envelope.sender,
        client=envelope.client,
        eightbit=envelope.eightbit,
        received_at=kept_time(arrived.received_at),
        size_bytes=arrived.size_bytes,
        recipient_count=len(envelope.recipients),
        entries=list(entries),
        stuffed_dots=envelope.stuffed_dots,
        words=envelope.words,
    )


def _index_row(share: Share, at: float) -> Put:
    place = share.name.place
    cells: Row = {
        "queue_name": place.queue_name,
        "slice_start": place.slice_start,
        "bucket": place.bucket,
        "entries": len(share.message.entries),
    }
    return Put(MAILS, (share.message.spool_id, share.name.enqueue_id), cells, at)


def _publication(share: Share) -> Publication:
    place = share.name.place
    trigger = ShareTrigger(place.queue_name, place.slice_start, place.bucket, share.name.enqueue_id)
    return Publication(f"{PREFIX}{place.queue_name}", write_trigger(trigger), share)
