"""What the clustered queue writes into its journal, item by item: commits, messages said again, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.journal.commit import IItem
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Settlement
from mailismus.queue.providers.clustered.format.cluster import Place
from mailismus.queue.providers.clustered.format.record import HEAD, file_record, lines_record, message_head, places_record
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.spool.draft import SpoolDraft

Moved = Callable[[JournaledMessage, int, int], None]
"""Told that a message now lives in this segment, its content at this offset."""

PLACES_AT_ONCE = 2000

LONGEST_LINE = 6000
"""Bytes of a recipient line at most: addresses of 254 bytes and a reply of 1,000, all of it escaped."""


class ICommitOwner(Protocol):
    """Who hears what became of a commit."""

    def commit_is_durable(self, item: CommitItem, segment: int, offset: int) -> None:
        """It is, at this place."""

    def commit_has_failed(self, item: CommitItem, error: OSError) -> None:
        """It is not."""


class _Item:
    """Records that are written as a whole."""

    __slots__ = ("buffers", "may_fail", "size_bytes")

    def __init__(self) -> None:
        self.buffers: list[bytes] = []
        self.size_bytes = 0
        self.may_fail = False

    def add(self, record: bytes) -> None:
        """One record, or a part of one."""
        self.buffers.append(record)
        self.size_bytes += len(record)


class CommitItem(_Item):
    """One commit: submissions and settlements, all or nothing."""

    __slots__ = ("_owner", "done", "drafts", "settlements", "youngs")

    def __init__(self, owner: ICommitOwner) -> None:
        super().__init__()
        self._owner = owner
        self.youngs: list[tuple[JournaledMessage, list[Entry], int]] = []
        """New messages, their entries, and where the content begins behind the start of the item."""
        self.drafts: list[SpoolDraft] = []
        self.settlements: Sequence[Settlement] = ()
        self.done: Deferred[Sequence[SpoolId]] = Deferred()

    def add_message(self, young: JournaledMessage, entries: list[Entry]) -> None:
        """A new message and all of its entries; its content is `JournaledMessage.content`, or in its silo."""
        self.youngs.append((young, entries, add_message_records(self, young, entries)))
        self.may_fail = True

    def durable(self, segment: int, offset: int) -> None:
        self._owner.commit_is_durable(self, segment, offset)

    def failed(self, error: OSError) -> None:
        self._owner.commit_has_failed(self, error)


class SayAgainItem(_Item):
    """A live message of a sick segment, said again in a fresh one."""

    __slots__ = ("_content_offset", "_moved", "_young")

    def __init__(self, young: JournaledMessage, moved: Moved) -> None:
        super().__init__()
        self._young = young
        self._moved = moved
        self._content_offset = 0

    def begin(self, entries: list[Entry], content: bytes | None) -> None:
        """The message and some of its entries; `content` None: it is in its silo."""
        self._content_offset = add_message_records(self, self._young, entries, content)

    def durable(self, segment: int, offset: int) -> None:
        self._moved(self._young, segment, offset + self._content_offset)

    def failed(self, error: OSError) -> None:
        raise AssertionError("is written until it is durable") from error


class MoreLinesItem(_Item):
    """Further entries of a message that is said again, because one item can't hold them all."""

    __slots__ = ()

    def durable(self, segment: int, offset: int) -> None:
        """Nobody waits."""

    def failed(self, error: OSError) -> None:
        raise AssertionError("is written until it is durable") from error


def say_again(young: JournaledMessage, content: bytes | None, most_size: int, moved: Moved) -> list[IItem]:
    """The items that say all of a message again as it is durable now, none larger than `most_size`. `moved` is called with
    the new segment and the content's place in it. To be appended at once and in this order."""
    entries = list(young.entries.values())
    room = most_size - (len(content) if content is not None else 0)
    at_once = max(1, min(room, most_size // 2) // LONGEST_LINE)
    first = SayAgainItem(young, moved)
    first.begin(entries[:at_once], content)
    items: list[IItem] = [first]
    for start in range(at_once, len(entries), at_once):
        more = MoreLinesItem()
        add_lines(more, young, entries[start : start + at_once])
        items.append(more)
    return items


class EpochItem(_Item):
    """An epoch record; `done` is called when it is durable."""

    __slots__ = ("_done",)

    def __init__(self, record: bytes, done: Callable[[], None]) -> None:
        super().__init__()
        self._done = done
        self.add(record)

    def durable(self, segment: int, offset: int) -> None:
        self._done()

    def failed(self, error: OSError) -> None:
        raise AssertionError("is written until it is durable") from error


class PlacesItem(_Item):
    """Places of entries that were settled while they were moved. Nobody waits; without its checkpoint it is nothing."""

    __slots__ = ()

    @classmethod
    def of(cls, entries: Sequence[tuple[QueueId, Place]]) -> list[PlacesItem]:
        """As many items as it takes."""
        items = []
        for start in range(0, len(entries), PLACES_AT_ONCE):
            item = cls()
            item.add(places_record(entries[start : start + PLACES_AT_ONCE]))
            items.append(item)
        return items

    def durable(self, segment: int, offset: int) -> None:
        """Nobody waits."""

    def failed(self, error: OSError) -> None:
        raise AssertionError("is written until it is durable") from error


class CheckpointItem(_Item):
    """A checkpoint record: the commit instant. When its batch fails the checkpoint never was, whatever can be read."""

    __slots__ = ("_abandoned", "_done")

    def __init__(self, record: bytes, done: Callable[[], None], abandoned: Callable[[], None]) -> None:
        super().__init__()
        self.may_fail = True
        self._done = done
        self._abandoned = abandoned
        self.add(record)

    def durable(self, segment: int, offset: int) -> None:
        self._done()

    def failed(self, error: OSError) -> None:
        self._abandoned()


def add_message_records(item: _Item, young: JournaledMessage, entries: list[Entry], content: bytes | None = None) -> int:
    """The records that begin a message: its content with the lines of one area, then those of the other areas. Gives
    where the content begins behind the start of the item."""
    message = young.message
    spool_id = message.spool_id
    area = entries[0].area
    others = [entry for entry in entries if entry.area is not area]
    lines = format_lines(message, [entry for entry in entries if entry.area is area] if others else entries)
    content_offset = item.size_bytes + HEAD.size + len(lines)
    if content is None:
        content = young.content
    if young.is_in_silo:
        item.add(file_record(area, spool_id, lines))
    else:
        assert content is not None
        item.add(message_head(area, spool_id, lines, len(content)))
        item.add(content)
    if others:
        add_lines(item, young, others)
    return content_offset


def add_lines(item: _Item, young: JournaledMessage, entries: list[Entry]) -> None:
    """Lines records for these entries, one an area."""
    for area in Area:
        here = [entry for entry in entries if entry.area is area]
        if here:
            item.add(lines_record(area, young.message.spool_id, format_lines(young.message, here)))
