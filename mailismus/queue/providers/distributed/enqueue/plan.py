"""What is written and published for a submission. Pure.

All shares of a message in one area and one slice are of one partition, so they come by one mutation. A share that is due
has a trigger; one that waits has a due row, which becomes a trigger at its time. A message that is one share, in the slice
of its epoch, is found there by its id; all others have index rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import attrs

from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message, Placement
from mailismus.queue.providers.distributed.format.due import DueKind, DueShare, due_row, due_share
from mailismus.queue.providers.distributed.format.marks import trigger_of
from mailismus.queue.providers.distributed.format.share import (
    Blob,
    Share,
    ShareName,
    SharePlace,
    pieces_of,
    to_signed,
    writes_of,
)
from mailismus.queue.providers.distributed.format.slices import bucket_of, slice_start
from mailismus.queue.providers.distributed.format.tables import MAILS, queue_of
from mailismus.queue.providers.distributed.format.trigger import write_trigger
from mailismus.queue.providers.distributed.stores.rows import Put, Row, Write, kept_time
from mailismus.queue.providers.distributed.view.change import ViewSettings


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
    """`shares` are durable by `writes`, before a trigger is published. `due`: those that wait. `heirs`: rows of those that
    do not, for the case that this server ends before their triggers are durable."""

    shares: tuple[Share, ...]
    writes: tuple[Write, ...]
    publications: tuple[Publication, ...]
    due: tuple[DueShare, ...]
    heirs: tuple[DueShare, ...] = ()


def plan_enqueue(
    arrived: Arrived,
    view: ViewSettings,
    epoch_slice: float,
    now: float,
    new_id: Callable[[], UUID],
    writer: int,
    heirs_in_s: float | None = None,
) -> EnqueuePlan:
    """The plan. `now`: UTC seconds, from which the slice is computed. `epoch_slice`: where its epoch's messages begin.
    `writer`: the epoch of this server. `heirs_in_s`: what needs no time has a due row too, so much later; None: none."""
    now = kept_time(now)
    start = slice_start(now, view.slice_window_s)
    bucket = bucket_of(arrived.spool_id, view.bucket_count)
    shares = []
    for (area, due_at), entries in _groups(arrived).items():
        for piece in pieces_of(entries):
            name = ShareName(SharePlace(area.value, start, bucket), new_id())
            shares.append(Share(name, _message(arrived, piece), arrived.blob, now, due_at))
    writes: list[Write] = [write for share in shares for write in writes_of(share, now)]
    is_found_by_epoch = len(shares) == 1 and start == epoch_slice and shares[0].area is Area.INCOMING
    if not is_found_by_epoch:
        writes += [index_row(share, now) for share in shares]
    waiting = {share.name: due_share(share.name, share.due_at, now, writer) for share in shares if share.due_at > now}
    publications = tuple(publication_of(share) for share in shares if share.name not in waiting)
    heirs: tuple[DueShare, ...] = ()
    if heirs_in_s is not None:
        names = (publication.share.name for publication in publications)
        heirs = tuple(due_share(name, now + heirs_in_s, now, writer, DueKind.INSTEAD) for name in names)
    writes += [due_row(due, now) for due in (*waiting.values(), *heirs)]
    return EnqueuePlan(tuple(shares), tuple(writes), publications, tuple(waiting.values()), heirs)


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
    return [_entry(one, recipients[one.number - 1]) for one in arrived.placements]


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


def index_row(share: Share, at: float) -> Put:
    """The row that leads from the message to a share."""
    place = share.name.place
    cells: Row = {
        "queue_name": place.queue_name,
        "slice_start": place.slice_start,
        "bucket": place.bucket,
        "entries": len(share.message.entries),
    }
    return Put(MAILS, (to_signed(share.message.spool_id), share.name.enqueue_id), cells, at)


def closed_row(share: Share, at: float) -> Put:
    """The same row of a share of which nothing is left."""
    row = index_row(share, at)
    return Put(row.table, row.key, {**row.cells, "closed_at": at}, at)


def publication_of(share: Share) -> Publication:
    """The trigger of all that is left of a share."""
    return Publication(queue_of(share.name.place.queue_name), write_trigger(trigger_of(share.name)), share)
