"""A share: what one commit puts into one area for one time, of one message. As values, and as rows. Pure.

    row 0       the head: what is said of the message, where its content is, and the share that this one moved from
    row 1..     an entry, under its recipient's number in the envelope

All rows of a share are of one partition, so they come by one mutation. They are never changed: what becomes of an entry is
in the marks. Rows come from the network: what lacks its head, or a cell that every row has, is told and passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.distributed.format.tables import ENQUEUED
from mailismus.queue.providers.distributed.format.trigger import SHARE_ENTRIES
from mailismus.queue.providers.distributed.stores.rows import Key, Put, Row, Value

_SIGNED = 1 << 63


@attrs.frozen
class SharePlace:
    """A partition."""

    queue_name: str
    slice_start: float
    bucket: int

    @property
    def key(self) -> Key:
        """The partition's key."""
        return (self.queue_name, self.slice_start, self.bucket)


@attrs.frozen
class ShareName:
    """A share: where, and which."""

    place: SharePlace
    enqueue_id: UUID


@attrs.frozen
class Blob:
    """Where the content is, and what it must be."""

    key: str
    sha256: bytes


@attrs.frozen
class Share:
    """A share. `message` holds its entries, all of one area and one due time."""

    name: ShareName
    message: Message
    blob: Blob
    enqueued_at: float
    due_at: float
    origin: ShareName | None = None

    @property
    def area(self) -> Area:
        """The area of its entries."""
        return Area(self.name.place.queue_name)

    @property
    def was_due(self) -> bool:
        """Whether it was due as it was made, by the clock of its maker."""
        return self.due_at <= self.enqueued_at


def pieces_of(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Entries of one area and time, a share each: at most `SHARE_ENTRIES`."""
    for start in range(0, len(entries), SHARE_ENTRIES):
        yield entries[start : start + SHARE_ENTRIES]


def writes_of(share: Share, at: float) -> list[Put]:
    """All rows of a share. `at`: the time of the write, the same whenever it is repeated."""
    message, origin = share.message, share.origin
    head: dict[str, Value] = {
        "spool_id": to_signed(message.spool_id),
        "sender": message.sender,
        "client": message.client,
        "eightbit": int(message.eightbit),
        "received_at": message.received_at,
        "size_bytes": message.size_bytes,
        "stuffed_dots": message.stuffed_dots,
        "recipient_count": message.recipient_count,
        "message_words": message.words,
        "blob_key": share.blob.key,
        "blob_sha256": share.blob.sha256,
        "enqueued_at": share.enqueued_at,
        "due_at": share.due_at,
    }
    if origin is not None:
        queue, start, bucket = origin.place.key
        head |= {"origin_queue": queue, "origin_slice": start, "origin_bucket": bucket, "origin_id": origin.enqueue_id}
    key = (*share.name.place.key, share.name.enqueue_id)
    entries = [Put(ENQUEUED, (*key, entry.number), _cells_of(entry), at) for entry in message.entries]
    return [Put(ENQUEUED, (*key, 0), head, at), *entries]


def _cells_of(entry: Entry) -> dict[str, Value]:
    cells: dict[str, Value] = {
        "recipient": entry.recipient,
        "attempts": entry.attempts,
        "host": entry.host,
        "words": entry.words,
    }
    if entry.reply is not None:
        cells |= {"code": entry.reply.code, "enhanced": entry.reply.enhanced, "reply": entry.reply.text}
    return cells


@attrs.frozen
class ReadShares:
    """Shares that were read, and the names of those of which rows are missing or malformed."""

    shares: tuple[Share, ...]
    damaged: tuple[UUID, ...]


def read_shares(place: SharePlace, rows: Iterable[Row]) -> ReadShares:
    """The shares of a partition, of which all rows were read."""
    groups: dict[UUID, list[Row]] = {}
    for row in rows:
        name = row["enqueue_id"]
        assert isinstance(name, UUID), "a column of the key"
        groups.setdefault(name, []).append(row)
    shares, damaged = [], []
    for name, group in groups.items():
        share = _share_of(ShareName(place, name), group)
        if share is None:
            damaged.append(name)
        else:
            shares.append(share)
    return ReadShares(tuple(shares), tuple(damaged))


def _share_of(name: ShareName, rows: Sequence[Row]) -> Share | None:
    head = next((row for row in rows if row["number"] == 0), None)
    try:
        area = Area(name.place.queue_name)
        if head is None:
            return None
        due_at = _number(head["due_at"])
        entries = [_entry_of(row, area, due_at) for row in rows if row is not head]
        message = Message(
            spool_id=to_spool_id(_whole(head["spool_id"])),
            sender=_bytes(head["sender"]),
            client=_bytes(head["client"]),
            eightbit=bool(_whole(head["eightbit"])),
            received_at=_number(head["received_at"]),
            size_bytes=_whole(head["size_bytes"]),
            recipient_count=_whole(head["recipient_count"]),
            entries=entries,
            stuffed_dots=_whole(head["stuffed_dots"]),
            words=_optional_bytes(head["message_words"]),
        )
        blob = Blob(_text(head["blob_key"]), _bytes(head["blob_sha256"]))
        return Share(name, message, blob, _number(head["enqueued_at"]), due_at, _origin_of(head))
    except ValueError:
        return None


def _entry_of(row: Row, area: Area, due_at: float) -> Entry:
    code = row["code"]
    reply = None if code is None else Reply(_whole(code), _bytes(row["enhanced"]), _bytes(row["reply"]))
    return Entry(
        number=_whole(row["number"]),
        recipient=_bytes(row["recipient"]),
        area=area,
        due_at=due_at,
        attempts=_whole(row["attempts"]),
        reply=reply,
        host=_bytes(row["host"]),
        words=_optional_bytes(row["words"]),
    )


def _origin_of(head: Row) -> ShareName | None:
    queue, name = head["origin_queue"], head["origin_id"]
    if queue is None:
        return None
    if not isinstance(name, UUID):
        raise ValueError("an origin without its id")
    return ShareName(SharePlace(_text(queue), _number(head["origin_slice"]), _whole(head["origin_bucket"])), name)


def place_of(row: Row) -> ShareName | None:
    """The share that a row of the index names; None: it is malformed."""
    queue, start, bucket, name = row["queue_name"], row["slice_start"], row["bucket"], row["enqueue_id"]
    if not (
        isinstance(queue, str) and isinstance(start, int | float) and isinstance(bucket, int) and isinstance(name, UUID)
    ):
        return None
    return ShareName(SharePlace(queue, float(start), bucket), name)


def to_signed(spool_id: SpoolId) -> int:
    """The database has no unsigned numbers."""
    return spool_id - 2 * _SIGNED if spool_id >= _SIGNED else spool_id


def to_spool_id(number: int) -> SpoolId:
    """The other way."""
    return SpoolId(number + 2 * _SIGNED if number < 0 else number)


def _whole(value: Value) -> int:
    if not isinstance(value, int):
        raise ValueError("no number")
    return value


def _number(value: Value) -> float:
    if not isinstance(value, int | float):
        raise ValueError("no time")
    return float(value)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("no bytes")
    return value


def _optional_bytes(value: Value) -> bytes | None:
    return None if value is None else _bytes(value)


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value
