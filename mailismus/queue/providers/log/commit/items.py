"""Items that are written into the log: commits, moved envelopes, starts, epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mailismus.journal.commit import IItem
from mailismus.queue.files.journal_item import EpochItem, JournalItem, LastingItem
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, CommitListener, EndedEntries, Entry, Message
from mailismus.queue.providers.log.format.record import (
    ContentPlace,
    epoch_record,
    file_record,
    interval_of,
    lines_record,
    message_head,
    moved_record,
    replacement_record,
    start_record,
)
from mailismus.queue.providers.log.index.envelope import LogEnvelope
from mailismus.queue.providers.log.index.working_set import LogMessage
from mailismus.spool.draft import SpoolDraft


class ILogOwner(Protocol):
    """Hears how a commit ended."""

    def message_is_durable(self, item: LogMessageItem, segment: int, offset: int) -> None:
        """The commit of one new message is durable, at this offset of this segment."""

    def message_has_failed(self, item: LogMessageItem, error: OSError) -> None:
        """It failed."""

    def commit_is_durable(self, item: LogCommitItem, segment: int, offset: int) -> None:
        """The commit is durable, at this offset of this segment."""

    def commit_has_failed(self, item: LogCommitItem, error: OSError) -> None:
        """The commit failed."""

    def move_is_durable(self, item: MoveItem, segment: int, offset: int) -> None:
        """The envelope lies at this offset of this segment."""

    def starts_are_durable(self, item: StartItem, segment: int, offset: int) -> None:
        """The start record is durable."""


class LogMessageItem:
    """The commit of one new message whose content goes into the log, and whose entries can all be taken at once: the usual
    one (hot path)."""

    __slots__ = ("_owner", "buffers", "content_offset", "draft", "known", "listener", "mark", "size_bytes")
    may_fail = True

    def __init__(
        self,
        owner: ILogOwner,
        listener: CommitListener[Any],
        mark: object,
        draft: SpoolDraft,
        known: LogMessage,
        content: bytes,
    ) -> None:
        """`known`: with its entries."""
        self._owner, self.listener, self.mark = owner, listener, mark
        self.draft, self.known = draft, known
        message = known.message
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


class NewEnvelope:
    """An envelope in an item. `offset`: of its record from the start of the item; `content_offset`: of its content, 0 where
    that lies elsewhere; `content`: where, None: in a message file; `entries`: those that are in it; `record_bytes`: of its
    records, without a content among them."""

    __slots__ = ("content", "content_offset", "entries", "envelope", "known", "offset", "record_bytes")

    def __init__(
        self,
        known: LogMessage,
        envelope: LogEnvelope,
        entries: Sequence[Entry],
        offset: int,
        content_offset: int,
        content: ContentPlace | None,
        record_bytes: int,
    ) -> None:
        self.known, self.envelope, self.entries = known, envelope, entries
        self.offset, self.content_offset, self.content = offset, content_offset, content
        self.record_bytes = record_bytes


class LogCommitItem(JournalItem):
    """One commit: submissions and settlements, all or nothing. `listener` is told of its end, and knows it by `mark`."""

    __slots__ = (
        "_owner",
        "drafts",
        "ended",
        "held",
        "left",
        "listener",
        "mark",
        "messages",
        "replaced",
    )

    def __init__(self, owner: ILogOwner, listener: CommitListener[Any], mark: object) -> None:
        super().__init__()
        self._owner, self.listener, self.mark = owner, listener, mark
        self.drafts: list[SpoolDraft] = []
        self.messages: list[NewEnvelope] = []
        """New messages."""
        self.replaced: list[NewEnvelope] = []
        """New envelopes of known messages."""
        self.ended: list[EndedEntries] = []
        """Entries that are removed."""
        self.left: list[tuple[LogMessage, LogEnvelope, Sequence[int]]] = []
        """Entries that leave their envelopes, removed or replaced."""
        self.held: list[tuple[LogMessage, Sequence[int]]] = []
        """Entries that nobody had taken."""

    def add_message(self, known: LogMessage) -> None:
        """A new message and all of its entries; its content is in memory, or in its silo."""
        self.may_fail = True
        entries = list(known.entries.values())
        self.messages.append(add_envelope(self, known, known.envelope, entries, 0.0, inline=known.content))

    def durable(self, segment: int, offset: int) -> None:
        self._owner.commit_is_durable(self, segment, offset)

    def failed(self, error: OSError) -> None:
        self._owner.commit_has_failed(self, error)


class MoveItem(LastingItem):
    """An envelope that is written again, with its content. Records about its former place before and behind hold."""

    __slots__ = ("_inline", "_now", "_owner", "has_start", "moved", "pin")

    def __init__(
        self,
        owner: ILogOwner,
        known: LogMessage,
        envelope: LogEnvelope,
        pin: int,
        now: float,
        content: bytes | None,
        place: ContentPlace | None = None,
    ) -> None:
        """`now`: UTC seconds, from which due times are counted. `pin`: sequence number of the next batch: records about
        the envelope may be in it. `content` goes with it, or is at `place`, or (both None) is a message file."""
        super().__init__()
        self._owner, self._now = owner, now
        self.pin = pin
        self.has_start = False
        """A start record stands beside the move: work was going on when it was asked for."""
        self.moved = NewEnvelope(known, envelope, known.entries_in(envelope), 0, 0, place, 0)
        self._inline = content

    def begin(self) -> None:
        """Add the records. Called once, at once. A start record comes first if work is going on: those before may leave the
        working suffix, and then nothing would tell a start of it."""
        new = self.moved
        if new.envelope.is_touched:
            self.has_start = True
            self.add(start_record([new.envelope.place]))
        self.add(moved_record(new.envelope.place))
        self.moved = add_envelope(self, new.known, new.envelope, new.entries, self._now, new.content, inline=self._inline)

    def durable(self, segment: int, offset: int) -> None:
        self._owner.move_is_durable(self, segment, offset)


class StartItem(LastingItem):
    """Work on these envelopes lasts."""

    __slots__ = ("_owner", "envelopes")

    def __init__(self, owner: ILogOwner, envelopes: Sequence[LogEnvelope]) -> None:
        super().__init__()
        self._owner = owner
        self.envelopes = envelopes
        self.add(start_record([envelope.place for envelope in envelopes]))

    def durable(self, segment: int, offset: int) -> None:
        self._owner.starts_are_durable(self, segment, offset)


def epoch_item(epoch: int, done: Callable[[], None]) -> IItem:
    """Return the item that says this epoch; `done` is called when it is durable."""
    return EpochItem(epoch_record(epoch), done)


def add_envelope(
    item: JournalItem,
    known: LogMessage,
    envelope: LogEnvelope,
    entries: Sequence[Entry],
    now: float,
    content: ContentPlace | None = None,
    *,
    inline: bytes | None = None,
) -> NewEnvelope:
    """Add the records of an envelope with these entries. Its content is at the place `content`, or goes with it (`inline`),
    or is a message file. `now`: from which the due times of its entries are counted; 0: it is no retry."""
    message = known.message
    spool_id = message.spool_id
    area = entries[0].area
    here = [entry for entry in entries if entry.area is area]
    lines = format_lines(message, here)
    offset, content_offset = item.size_bytes, 0
    interval = interval_of(min([entry.due_at for entry in entries]) - now) if now else 0
    if content is not None:
        item.add(replacement_record(area, spool_id, lines, content, interval))
    elif inline is None:
        item.add(file_record(area, spool_id, lines, interval))
    else:
        item.add(message_head(area, spool_id, lines, len(inline)))
        content_offset = item.size_bytes
        item.add(inline)
    if len(here) < len(entries):
        _add_other_lines(item, message, area, entries)
    record_bytes = item.size_bytes - offset - (len(inline) if inline is not None else 0)
    return NewEnvelope(known, envelope, entries, offset, content_offset, content, record_bytes)


def _add_other_lines(item: JournalItem, message: Message, first: Area, entries: Sequence[Entry]) -> None:
    for area in Area:
        here = [entry for entry in entries if entry.area is area]
        if here and area is not first:
            item.add(lines_record(area, message.spool_id, format_lines(message, here)))
