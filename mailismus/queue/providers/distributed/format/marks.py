"""Marks: what has become of the entries of a share. Pure.

    row 0       of all entries of the share that have no mark of their own
    row 1..     of one entry

    done_at, removed_at   it is gone
    bounced_to            the share of its bounce
    moved_to              another share that goes on with it

An entry is over when its mark, or that of its share, has any cell. Of two outcomes both are written: gone counts before a
bounce, a bounce before any other move, and of two equal ones the later value. A share that moved from another one counts
only while the mark of its origin leads to it, whatever becomes of anyone's writes.

The server that gets the first trigger of new mail reads its rows alone, so who marks it says so in its head, by the same
write (`marked_at`); but for the server that had that trigger and ends the message: with that the content goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import attrs

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.share import Share, ShareName, SharePlace
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED
from mailismus.queue.providers.distributed.format.trigger import ShareTrigger, read_trigger, write_trigger
from mailismus.queue.providers.distributed.stores.rows import Put, Row, Value

WHOLE = 0
"""The number of a mark for all entries of a share."""


@attrs.frozen
class EntryMark:
    """A mark. `goes_to`: the share that goes on, or would if the entry were not gone. `is_unreadable`: one does, and it is
    not known which."""

    is_gone: bool
    goes_to: ShareName | None = None
    is_unreadable: bool = False

    @property
    def moved_to(self) -> ShareName | None:
        """The share that goes on; None: none does."""
        return None if self.is_gone else self.goes_to

    @property
    def successor(self) -> UUID | None:
        """The id of the share that goes on."""
        return None if self.moved_to is None else self.moved_to.enqueue_id


class Marks:
    """The marks that were read of some shares."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._marks: dict[tuple[UUID, int], EntryMark] = {}
        for row in rows:
            name, number = row["enqueue_id"], row["number"]
            assert isinstance(name, UUID), "a column of the key"
            assert isinstance(number, int), "a column of the key"
            is_gone = row["done_at"] is not None or row["removed_at"] is not None
            goes_to = row["moved_to"] if row["bounced_to"] is None else row["bounced_to"]
            if is_gone or goes_to is not None:
                self._marks[name, number] = _mark_of(goes_to, is_gone=is_gone)

    def of(self, name: UUID, number: int) -> EntryMark | None:
        """The mark of an entry; None: it lives. Its own counts before that of its share, which came later, for the rest."""
        return self._marks.get((name, number)) or self._marks.get((name, WHOLE))

    def goes_to(self, name: UUID, number: int) -> ShareName | None:
        """The share that went on with an entry, by its own mark or that of its share, whatever has become of it since."""
        both = (self._marks.get((name, number)), self._marks.get((name, WHOLE)))
        return next((mark.goes_to for mark in both if mark is not None and mark.goes_to is not None), None)

    def is_any_moved(self, name: UUID) -> bool:
        """Whether an entry of this share has moved."""
        return any(mark.goes_to is not None for (other, _), mark in self._marks.items() if other == name)


def done_mark(name: ShareName, number: int, at: float) -> Put:
    """It was delivered, or its report is made."""
    return _mark(name, number, "done_at", at, at)


def removed_mark(name: ShareName, number: int, at: float) -> Put:
    """It is not to be delivered: what was put in was refused, or another share goes on with it."""
    return _mark(name, number, "removed_at", at, at)


def moved_mark(name: ShareName, number: int, successor: ShareName, at: float) -> Put:
    """Another share goes on with it."""
    is_bounce = successor.place.queue_name == Area.BOUNCES.value
    return _mark(name, number, "bounced_to" if is_bounce else "moved_to", write_trigger(trigger_of(successor)), at)


def note_of(share: Share, at: float) -> tuple[Put, ...]:
    """What is written beside marks of a share: whoever gets its first trigger looks for them. Nothing for a share that never
    had one. It goes with its rows."""
    if share.area is not Area.INCOMING or share.origin is not None:
        return ()
    return (Put(ENQUEUED, (*share.name.place.key, share.name.enqueue_id, 0), {"marked_at": at}, share.enqueued_at),)


def trigger_of(name: ShareName) -> ShareTrigger:
    """The trigger of all that is left of a share."""
    place = name.place
    return ShareTrigger(place.queue_name, place.slice_start, place.bucket, name.enqueue_id)


def name_of(trigger: ShareTrigger) -> ShareName:
    """The share that a trigger is of."""
    return ShareName(SharePlace(trigger.queue_name, trigger.slice_start, trigger.bucket), trigger.enqueue_id)


def _mark(name: ShareName, number: int, cell: str, value: Value, at: float) -> Put:
    return Put(DELETED, (*name.place.key, name.enqueue_id, number), {cell: value}, at)


def _mark_of(goes_to: Value, *, is_gone: bool) -> EntryMark:
    trigger = read_trigger(goes_to) if isinstance(goes_to, bytes) else None
    is_unreadable = trigger is None and not is_gone
    return EntryMark(is_gone, None if trigger is None else name_of(trigger), is_unreadable)
