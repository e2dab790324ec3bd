"""Pieces: what is known of a stretch of one segment, and of the envelopes that rest there. Pure.

A piece keeps a time for each runner, amounts, and the segments that its envelopes refer to, and for an envelope the mark
of its id alone (`index.id_marks`). A runner is an area and a retry interval (`format.record.interval_of`).

*Rules*: a due time here may be too early, never too late. Times are UTC seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Filter, Latest, Message
from mailismus.queue.providers.log.index.amount import NOTHING, RestAmount
from mailismus.queue.providers.log.index.id_marks import IdMarks

PIECE_BYTES = 1 << 20
"""Bytes of a piece, about: read in one act."""

AGAIN_S = 1.0
"""Seconds until a piece is read again for the due entries of senders that were passed over; twice as long each time."""

MOST_AGAIN_S = 32.0
"""The same, at most: other entries of such a sender wait in memory."""

_AREAS = tuple(Area)
_FIRST = {area: at << 8 for at, area in enumerate(_AREAS)}


def runner_of(area: Area, interval: int) -> int:
    """Return the number of the runner of an area and a retry interval."""
    return _FIRST[area] + interval


def dues_of(entries: Iterable[Entry], dues: Iterable[float], interval: int) -> dict[int, float]:
    """Return the earliest due time of each runner of an envelope with these entries, due at these times."""
    found: dict[int, float] = {}
    for entry, due_at in zip(entries, dues, strict=True):
        runner = runner_of(entry.area, interval)
        if due_at < found.get(runner, due_at + 1):
            found[runner] = due_at
    return found


def area_of(runner: int) -> Area:
    """Return the area of a runner."""
    return _AREAS[runner >> 8]


@attrs.define
class PieceRest:
    """What was found to rest in a piece that was read."""

    dues: dict[int, float] = attrs.field(factory=dict)
    """Earliest due time of each runner."""
    amounts: dict[Area, RestAmount] = attrs.field(factory=lambda: dict.fromkeys(Area, NOTHING))
    """Of each area."""
    refers: set[int] = attrs.field(factory=set)
    """Segments of contents."""
    ids: IdMarks = attrs.field(factory=IdMarks)
    """Of its messages."""
    is_flushed: bool = False
    """Something of it matches a flush."""

    def add(
        self,
        spool_id: SpoolId,
        dues: Mapping[int, float],
        amounts: Iterable[tuple[Area, RestAmount]],
        content_segment: int,
        *,
        is_flushed: bool = False,
    ) -> None:
        """Add an envelope of this message: the earliest due time of each of its runners, its entries, and the segment of its
        content (0: a message file)."""
        self.ids.add(spool_id)
        for area, amount in amounts:
            self.amounts[area] = self.amounts[area].plus(amount)
        for runner, due_at in dues.items():
            self.dues[runner] = min(self.dues.get(runner, due_at), due_at)
        if content_segment:
            self.refers.add(content_segment)
        self.is_flushed = self.is_flushed or is_flushed


class Piece:
    """A piece of one segment, from the offset `begin` of a batch to where the next piece begins, or before."""

    __slots__ = (
        "again_s",
        "amounts",
        "begin",
        "dues",
        "end",
        "flushes",
        "ids",
        "is_known",
        "late",
        "late_amounts",
        "late_ids",
        "late_refers",
        "limits",
        "refers",
        "segment",
        "sequence",
    )

    def __init__(self, segment: int, begin: int, sequence: int, *, is_known: bool, end: float = math.inf) -> None:
        self.segment, self.begin = segment, begin
        self.sequence = sequence
        """Of its first batch, or lower."""
        self.is_known = is_known
        self.end = end
        """Nothing of it rests in batches from this offset on; infinity: the next piece, or the segment's end, says so."""
        self.dues: dict[int, float] = {}
        """Earliest due time of each runner that has resting envelopes here."""
        self.amounts = dict.fromkeys(Area, NOTHING)
        """Of each area, what rests here, as far as is known."""
        self.late_amounts = dict.fromkeys(Area, NOTHING)
        """Of these, those that were noted since the reading of it began."""
        self.refers: set[int] = set()
        """Segments with contents of resting envelopes here, or more."""
        self.late_refers: set[int] = set()
        """Of those that were noted since the reading of it began."""
        self.ids = IdMarks()
        """Of the messages whose envelopes rest here, as far as is known, or of more."""
        self.late_ids = IdMarks()
        """Of those that were noted since the reading of it began."""
        self.again_s = AGAIN_S
        """Seconds until it is read again if nothing could be loaded for the senders' sake."""
        self.late: dict[int, float] | None = None
        """What was noted since the reading of it began; None: it is not being read."""
        self.flushes: list[tuple[int, Filter]] = []
        """Deferred entries that match one of these are due at once, in batches up to this sequence number."""
        self.limits: list[tuple[int, Latest]] = []
        """Until when entries may wait (`IQueue.hasten`), in batches up to this sequence number."""

    @property
    def is_counted(self) -> bool:
        """Whether its amounts say all that a count must know."""
        return self.is_known and all(amount.is_lone for amount in self.amounts.values())

    def may_have(self, spool_id: SpoolId | None) -> bool:
        """Whether an envelope of this message, or (None) any, may rest here."""
        return spool_id is None or not self.is_known or self.ids.has(spool_id)

    def due_in(self, area: Area) -> float | None:
        """Earliest due time in this area; None: nothing of it rests here, as far as is known."""
        if not self.is_known:
            return 0.0
        return min((due_at for runner, due_at in self.dues.items() if area_of(runner) is area), default=None)

    def reach(self, begin: int) -> None:
        """Something of it rests in the batch at this offset."""
        self.end = max(self.end, begin + 1)

    def end_at(self, offset: float) -> None:
        """Nothing of it rests in batches from this offset on."""
        self.end = min(self.end, offset)

    def hold_back(self, *, is_again: bool) -> None:
        """Note that it was read. `is_again`: senders were passed over, so it is read again, later each time."""
        self.again_s = min(MOST_AGAIN_S, 2 * self.again_s) if is_again else AGAIN_S

    def due_at(self, sequence: int, message: Message, entry: Entry) -> float:
        """When an entry that rests in this batch is due."""
        due_at = self.limited(sequence, entry.area, entry.attempts, entry.due_at)
        if entry.area is Area.DEFERRED and self.flushes:
            for newest, one in self.flushes:
                if sequence <= newest and one.spool_id in (None, message.spool_id) and one.matches(message, entry):
                    return 0.0
        return due_at

    def limited(self, sequence: int, area: Area, attempts: int, due_at: float) -> float:
        """Until when entries of this batch may wait that stand there after so many attempts, the earliest of them until
        `due_at`."""
        for newest, latest in self.limits:
            due_at = due_at if sequence > newest else latest(area, attempts, due_at)
        return due_at
