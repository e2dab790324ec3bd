"""An envelope of the log in memory: where it lies, and how far work on it has come.

    waiting --first record about it durable--> working --finish record durable--> finished --marked--> garbage

*Rules*: `left` falls when a settlement is asked for, so that the last one says that the envelope is finished. A settlement
that may fail counts in `unsure` until its end is known: no other record may rely on it.
"""

from __future__ import annotations

from mailismus.queue.providers.log.format.record import LogPlace


class LogEnvelope:
    """One envelope that entries are left of."""

    __slots__ = (
        "content_bytes",
        "content_offset",
        "content_segment",
        "entry_count",
        "is_marked",
        "is_recorded",
        "is_start_asked",
        "left",
        "offset",
        "pin",
        "place_offset",
        "record_bytes",
        "segment",
        "sequence",
        "unsure",
        "was_out",
    )

    def __init__(self, entry_count: int) -> None:
        self.sequence = 0
        """With `place_offset`: its place (`format.record.LogPlace`)."""
        self.place_offset = 0
        self.segment = 0
        """Number of the segment in which it lies; 0: it is not durable yet."""
        self.offset = 0
        """Offset of its record in that segment's file."""
        self.content_segment = 0
        """Number of the segment that holds the content its record refers to; 0: a message file."""
        self.content_offset = 0
        """Offset of that content in the segment's file."""
        self.content_bytes = 0
        """Bytes of that content."""
        self.record_bytes = 0
        """Bytes of its records, without a content in there."""
        self.entry_count = entry_count
        """Entries that have not left it durably."""
        self.left = entry_count
        """Entries that no settlement was asked for."""
        self.unsure = 0
        """Settlements under way that may fail."""
        self.pin = 0
        """Sequence number of the first batch with a record about it that a start would need; 0: there is none."""
        self.is_recorded = False
        """A durable record tells a start that work on it is going on. Without one it waits, for a start, even if its move
        is to stay in the suffix."""
        self.is_start_asked = False
        """Its start record is on the way, or durable."""
        self.is_marked = False
        """It is marked durably, though work is going on."""
        self.was_out = False
        """Entries of it were out in the last round of marks."""

    @property
    def place(self) -> LogPlace:
        """Its name."""
        return LogPlace(self.sequence, self.place_offset)

    def lie(self, sequence: int, place_offset: int, segment: int, offset: int, record_bytes: int) -> None:
        """Note that it is durable there."""
        self.sequence, self.place_offset = sequence, place_offset
        self.segment, self.offset, self.record_bytes = segment, offset, record_bytes

    def refer(self, segment: int, offset: int, size_bytes: int) -> None:
        """Note where its content lies."""
        self.content_segment, self.content_offset, self.content_bytes = segment, offset, size_bytes

    @property
    def is_touched(self) -> bool:
        """Whether a record about it was written or asked for."""
        return bool(self.pin or self.unsure) or self.is_start_asked or self.left != self.entry_count

    @property
    def wants_start(self) -> bool:
        """Whether work on it, if it lasts, has to be recorded."""
        return not self.is_start_asked and not self.is_recorded and bool(self.left)

    @property
    def may_be_marked(self) -> bool:
        """Whether the mark of work may be written, and is not."""
        return self.is_recorded and not self.is_marked

    def work(self, sequence: int) -> None:
        """Note that a batch of this number has a record about it."""
        self.is_recorded = True
        if not self.pin:
            self.pin = sequence

    def lose_one(self) -> bool:
        """Note that an entry is in a later envelope. Return whether none is left."""
        self.left -= 1
        self.entry_count -= 1
        return not self.entry_count

    def mark(self) -> None:
        """Note that it is durably marked."""
        self.is_marked = True

    def begin_again(self, pin: int, *, is_recorded: bool) -> None:
        """Note that it was moved: it is not marked there, and records about it are at or behind this batch. `is_recorded`: a
        start record stands beside the move. Without one, those that were asked for meanwhile are still to come."""
        self.pin, self.is_marked = pin, False
        self.is_recorded = self.is_recorded or is_recorded

    def wait_again(self) -> None:
        """Note that it was moved while it waited: no record in the suffix is about it."""
        self.is_marked, self.was_out = False, False


class Unmarked:
    """An envelope that is garbage and not durably marked. `pin`: the first batch with a record about it."""

    __slots__ = ("offset", "pin", "segment")

    def __init__(self, segment: int, offset: int, pin: int) -> None:
        self.segment, self.offset, self.pin = segment, offset, pin
