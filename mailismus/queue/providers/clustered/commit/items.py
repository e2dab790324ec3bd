"""Items that the clustered queue writes into its journal: commits, rewritten messages, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mailismus.journal.commit import IItem
from mailismus.mail.ids import QueueId
from mailismus.queue.files.journal_item import EpochItem, JournalItem, LastingItem
from mailismus.queue.files.recipient_line import LONGEST_LINE, format_lines
from mailismus.queue.interface import Area, CommitListener, EndedEntries, Entry, M, Settlement
from mailismus.queue.providers.clustered.format.cluster import Place
from mailismus.queue.providers.clustered.format.record import (
    HEAD,
    epoch_record,
    file_record,
    lines_record,
    message_head,
    places_record,
)
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.spool.draft import SpoolDraft

PLACES_AT_ONCE = 2000


class ICommitOwner(Protocol):
    """Hears how a commit ended."""

    def message_is_durable(self, item: MessageItem, segment: int, offset: int) -> None:
        """The commit of one new message is durable, at this offset of this segment."""

    def message_has_failed(self, item: MessageItem, error: OSError) -> None:
        """It failed."""

    def commit_is_durable(self, item: CommitItem, segment: int, offset: int) -> None:
        """The commit is durable, at this offset of this segment."""

    def commit_has_failed(self, item: CommitItem, error: OSError) -> None:
        """The commit failed."""


class MessageItem:
    """The commit of one new message whose content goes into the journal, and whose entries can all be taken at once: the
    usual one (hot path)."""

    __slots__ = ("_owner", "buffers", "content_offset", "draft", "journaled", "listener", "mark", "size_bytes")
    may_fail = True

    def __init__(
        self,
        owner: ICommitOwner,
        listener: CommitListener[Any],
        mark: object,
        draft: SpoolDraft,
        journaled: JournaledMessage,
        content: bytes,
    ) -> None:
        """`journaled`: with its entries."""
        self._owner, self.listener, self.mark = owner, listener, mark
        self.draft, self.journaled = draft, journaled
        message = journaled.message
        lines = format_lines(message, message.entries)
        head = message_head(Area.INCOMING, message.spool_id, lines, len(content))
        self.buffers = [head, content]
        self.content_offset = len(head)
        """From the start of the item."""
        self.size_bytes = len(head) + len(content)

    def durable(self, segment: int, offset: int) -> None:
        self._owner.message_is_durable(self, segment, offset)

    def failed(self, error: OSError) -> None:
        self._owner.message_has_failed(self, error)


class CommitItem(JournalItem):
    """One commit: submissions and settlements, all or nothing. `listener` is told of its end, and knows it by `mark`."""

    __slots__ = ("_owner", "drafts", "ended", "listener", "mark", "messages", "settlements")

    def __init__(self, owner: ICommitOwner, listener: CommitListener[Any], mark: object) -> None:
        super().__init__()
        self._owner, self.listener, self.mark = owner, listener, mark
        self.messages: list[tuple[JournaledMessage, int]] = []
        """New messages with their entries, and the offset of the content from the start of the item."""
        self.drafts: list[SpoolDraft] = []
        self.ended: Sequence[EndedEntries] = ()
        self.settlements: Sequence[Settlement] = ()

    def add_message(self, journaled: JournaledMessage) -> None:
        """A new message and all of its entries; its content is `content`, or in its silo."""
        self.messages.append((journaled, add_message_records(self, journaled, list(journaled.entries.values()))))
        self.may_fail = True

    def set_listener(self, listener: CommitListener[M], mark: M) -> None:
        """Who is told of the commit's end."""
        self.listener, self.mark = listener, mark

    def set_ended(self, ended: Sequence[EndedEntries]) -> None:
        """Entries that are removed, whose records it has."""
        self.ended = ended

    def set_settlements(self, settlements: Sequence[Settlement]) -> None:
        """Settlements that replace entries, whose records it has."""
        self.settlements = settlements

    def durable(self, segment: int, offset: int) -> None:
        self._owner.commit_is_durable(self, segment, offset)

    def failed(self, error: OSError) -> None:
        self._owner.commit_has_failed(self, error)


class RewriteItem(LastingItem):
    """A live message of a failed segment, rewritten in a fresh one."""

    __slots__ = ("_content_offset", "_journaled")

    def __init__(self, journaled: JournaledMessage) -> None:
        super().__init__()
        self._journaled = journaled
        self._content_offset = 0

    def begin(self, entries: list[Entry]) -> None:
        """Add the message and some of its entries."""
        self._content_offset = add_message_records(self, self._journaled, entries)

    def durable(self, segment: int, offset: int) -> None:
        self._journaled.move_to(segment, offset + self._content_offset)


class MoreLinesItem(LastingItem):
    """Further entries of a message that is rewritten, because one item can't hold them all."""

    __slots__ = ()

    def durable(self, segment: int, offset: int) -> None:
        """Nothing waits for it."""


def rewrite(journaled: JournaledMessage, largest: int) -> list[IItem]:
    """Return the items that rewrite a message as it is durable now, none larger than `largest` bytes; its content is in
    memory or in its silo. To be appended at once and in this order."""
    entries = list(journaled.entries.values())
    content = journaled.content
    room = largest - (len(content) if content is not None else 0)
    at_once = max(1, min(room, largest // 2) // LONGEST_LINE)
    first = RewriteItem(journaled)
    first.begin(entries[:at_once])
    items: list[IItem] = [first]
    for start in range(at_once, len(entries), at_once):
        more = MoreLinesItem()
        add_lines(more, journaled, entries[start : start + at_once])
        items.append(more)
    return items


class PlacesItem(LastingItem):
    """Places of entries that were settled while they were moved. Without its checkpoint it does not count."""

    __slots__ = ()

    @classmethod
    def of(cls, entries: Sequence[tuple[QueueId, Place]]) -> list[PlacesItem]:
        """Return as many items as it takes."""
        items = []
        for start in range(0, len(entries), PLACES_AT_ONCE):
            item = cls()
            item.add(places_record(entries[start : start + PLACES_AT_ONCE]))
            items.append(item)
        return items

    def durable(self, segment: int, offset: int) -> None:
        """Nothing waits for it."""


class CheckpointItem(JournalItem):
    """A checkpoint record: the commit instant. When its batch fails the checkpoint is abandoned, whatever can be read."""

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


def add_message_records(item: JournalItem, journaled: JournaledMessage, entries: list[Entry]) -> int:
    """Add the records of a message: its content with the lines of one area, then the lines of the other areas. Return the
    offset of the content from the start of the item."""
    message = journaled.message
    spool_id = message.spool_id
    area = entries[0].area
    others = [entry for entry in entries if entry.area is not area]
    lines = format_lines(message, [entry for entry in entries if entry.area is area] if others else entries)
    content_offset = item.size_bytes + HEAD.size + len(lines)
    if journaled.is_in_silo:
        item.add(file_record(area, spool_id, lines))
    else:
        content = journaled.content
        assert content is not None
        item.add(message_head(area, spool_id, lines, len(content)))
        item.add(content)
    if others:
        add_lines(item, journaled, others)
    return content_offset


def add_lines(item: JournalItem, journaled: JournaledMessage, entries: list[Entry]) -> None:
    """Add lines records for these entries, one for each area."""
    for area in Area:
        here = [entry for entry in entries if entry.area is area]
        if here:
            item.add(lines_record(area, journaled.message.spool_id, format_lines(journaled.message, here)))


def epoch_item(epoch: int, done: Callable[[], None]) -> IItem:
    """Return the item that says this epoch; `done` is called when it is durable."""
    return EpochItem(epoch_record(epoch), done)
