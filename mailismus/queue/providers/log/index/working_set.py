"""The working set: messages whose entries are in memory, each with the envelopes that its entries are in. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

from mailismus.mail.ids import SpoolId
from mailismus.queue.due.entries import NONE_OUT, DueMessage
from mailismus.queue.due.index import DueIndex
from mailismus.queue.interface import Entry, Message
from mailismus.queue.providers.log.format.record import ContentPlace, LogPlace
from mailismus.queue.providers.log.index.envelope import LogEnvelope

NOTHING_ASKED: frozenset[int] = frozenset()


class LogMessage(DueMessage):
    """A message with entries in memory. Its content is in memory, in the log, or a message file."""

    __slots__ = (
        "asked",
        "checksum",
        "content",
        "content_offset",
        "content_segment",
        "envelope",
        "envelope_of",
        "has_rested",
        "is_in_silo",
    )

    def __init__(
        self, message: Message, entries: Iterable[Entry], envelope: LogEnvelope, content: bytes | None = None
    ) -> None:
        self.message = message
        self.entries = {entry.number: entry for entry in entries}
        self.out = NONE_OUT
        self.since = 0.0
        self.content = content
        """The content while it is in memory."""
        self.content_segment = 0
        self.content_offset = 0
        self.checksum = -1
        """CRC of the content; -1: not known yet, and it is in memory."""
        self.is_in_silo = False
        self.has_rested = False
        """Further entries of it may rest in the log."""
        self.envelope = envelope
        """Of all entries, unless there is `envelope_of`."""
        self.envelope_of: dict[int, LogEnvelope] | None = None
        """By number of the entry, where there are several."""
        self.asked: set[int] | frozenset[int] = NOTHING_ASKED
        """Entries with a settlement under way."""

    def put_in_silo(self) -> None:
        """Note that the content is a message file."""
        self.is_in_silo = True

    def rest(self) -> None:
        """Note that entries of it may rest in the log alone."""
        self.has_rested = True

    def put_in_log(self, segment: int, offset: int, checksum: int) -> None:
        """Note where the content lies."""
        self.content_segment, self.content_offset, self.checksum = segment, offset, checksum

    def find_content(self, gone: LogEnvelope) -> None:
        """An envelope is gone: what it referred to may go too. Of several copies another one is the content from now on."""
        if (gone.content_segment, gone.content_offset) != (self.content_segment, self.content_offset):
            return
        for envelope in self.envelopes():
            if envelope is not gone and envelope.content_segment:
                self.content_segment, self.content_offset = envelope.content_segment, envelope.content_offset
                return

    def know_checksum(self) -> None:
        """Have the checksum of the content known."""
        if self.checksum < 0:
            assert self.content is not None
            self.checksum = zlib.crc32(self.content)

    def content_place(self) -> ContentPlace:
        """Where the content lies. Its checksum must be known."""
        return ContentPlace(self.content_segment, self.content_offset, self.checksum)

    def ask(self, numbers: Sequence[int]) -> None:
        """Note that settlements of these entries are under way."""
        if self.asked:
            self.asked = self.asked.union(numbers)
        else:
            self.asked = set(numbers)

    def unask(self, numbers: Sequence[int]) -> None:
        """Note that their settlements have ended."""
        if len(self.asked) == len(numbers):
            self.asked = NOTHING_ASKED
        else:
            self.asked = self.asked.difference(numbers)

    def envelope_with(self, number: int) -> LogEnvelope:
        """The envelope that this entry is in."""
        return self.envelope if self.envelope_of is None else self.envelope_of[number]

    def by_envelope(self, numbers: Sequence[int]) -> list[tuple[LogEnvelope, Sequence[int]]]:
        """These entries, by the envelopes that they are in."""
        if self.envelope_of is None:
            return [(self.envelope, numbers)]
        groups: dict[LogEnvelope, list[int]] = {}
        for number in numbers:
            groups.setdefault(self.envelope_of[number], []).append(number)
        return list(groups.items())

    def envelopes(self) -> Iterable[LogEnvelope]:
        """All envelopes with entries."""
        return (self.envelope,) if self.envelope_of is None else dict.fromkeys(self.envelope_of.values())

    def entries_in(self, envelope: LogEnvelope) -> list[Entry]:
        """The entries of one envelope."""
        if self.envelope_of is None:
            return list(self.entries.values())
        return [self.entries[number] for number, other in self.envelope_of.items() if other is envelope]

    def enter(self, numbers: Iterable[int], envelope: LogEnvelope) -> None:
        """Note that these entries are in this envelope now."""
        numbers = list(numbers)
        if len(numbers) == len(self.entries):
            self.envelope, self.envelope_of = envelope, None
            return
        if self.envelope_of is None:
            self.envelope_of = dict.fromkeys(self.entries, self.envelope)
        for number in numbers:
            self.envelope_of[number] = envelope

    def join(self, entries: Iterable[Entry], envelope: LogEnvelope) -> list[LogEnvelope]:
        """Add entries of another envelope. Of two states of an entry this one is the later, and true. Return the envelopes
        that no entry is left of."""
        emptied = self.forget_former([entry.number for entry in entries])
        if self.envelope_of is None:
            self.envelope_of = dict.fromkeys(self.entries, self.envelope)
        for entry in entries:
            self.entries[entry.number] = entry
            self.envelope_of[entry.number] = envelope
        return emptied

    def later_in(self, place: LogPlace, entries: Iterable[Entry]) -> list[Entry]:
        """Return those of the entries of the envelope at this place that no later envelope has, and of which no earlier one
        is out. An entry is in two live envelopes only where bytes were damaged."""
        return [
            entry
            for entry in entries
            if (number := entry.number) not in self.entries
            or (number not in self.out and self.envelope_with(number).place < place)
        ]

    def forget_former(self, numbers: Iterable[int]) -> list[LogEnvelope]:
        """Note that these entries are in another envelope. Return those of their former ones that no entry is left of."""
        formers = [self.envelope_with(number) for number in numbers if number in self.entries]
        return [former for former in formers if former.lose_one()]

    def leave(self, numbers: Iterable[int]) -> None:
        """Note that these entries are in no envelope any more."""
        if self.envelope_of is not None:
            for number in numbers:
                self.envelope_of.pop(number, None)


class WorkingSet(DueIndex[LogMessage]):
    """Index of the messages in memory."""

    def live(self, spool_id: SpoolId, number: int) -> LogMessage | None:
        """The message of an entry that is there."""
        known = self.messages.get(spool_id)
        return known if known is not None and number in known.entries else None
