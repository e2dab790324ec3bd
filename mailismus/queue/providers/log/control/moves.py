"""Moves: envelopes of failed segments and of those that are emptied, and contents there, are written again.

*Rules*: of a failed segment, what is in memory is written again at once, before any other mail; the rest is read first,
beside all other work. A failed segment is removed when nothing in it is needed (`control.rounds`). What is moved to empty a
segment goes with batches that are written anyhow, `RIDE_BYTES` with each.

*Not here*: which segments are emptied (`control.compaction`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence

from twisted.logger import Logger

from mailismus.errors import StorageError
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.spool_ids import Naming
from mailismus.queue.providers.log.commit.items import ILogOwner, MoveItem, epoch_item
from mailismus.queue.providers.log.control.ledger import LogLedger
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.format.record import ContentPlace
from mailismus.queue.providers.log.index.envelope import LogEnvelope
from mailismus.queue.providers.log.index.working_set import LogMessage
from mailismus.queue.providers.log.read.content import LogContents
from mailismus.spool.draft import RefusedDrafts

RIDE_BYTES = 256 << 10
"""Bytes of moved envelopes that one batch takes along, about."""

RIDE_COUNT = 100
"""The same in envelopes."""


class Moves:
    """Moves of one queue (`journal.batch_events.IBatchListener`). `now`: UTC seconds."""

    _log = Logger()

    def __init__(
        self,
        ledger: LogLedger,
        segments: LogSegments,
        commits: GroupCommit,
        naming: Naming,
        owner: ILogOwner,
        contents: LogContents,
        refused: RefusedDrafts,
        now: Callable[[], float],
    ) -> None:
        self._ledger, self._working_set, self._holds = ledger, ledger.working_set, ledger.holds
        self._segments, self._commits, self._naming = segments, commits, naming
        self._owner, self._contents, self._refused, self._now = owner, contents, refused, now
        self._moving: dict[LogEnvelope, tuple[int, int]] = {}
        """Envelopes whose move was asked for, with segment and content's segment at that time."""
        self._prepared: deque[MoveItem] = deque()
        """Moves that wait for a batch to go with."""
        self._is_draining = False

    @property
    def under_way(self) -> int:
        """How many moves are not durable yet."""
        return len(self._moving)

    def on_durable(self) -> None:
        self._refused.drop()
        self._segments.remove_spoiled()
        if self._moving:
            self._moving = {
                envelope: was for envelope, was in self._moving.items() if _lies(envelope) == was and envelope.entry_count
            }
        size_bytes, count = 0, 0
        while self._prepared and size_bytes < RIDE_BYTES and count < RIDE_COUNT:
            item = self._prepared.popleft()
            size_bytes, count = size_bytes + item.size_bytes, count + 1
            self._commits.ride(item)

    def on_failed(self) -> Sequence[IItem]:
        self._segments.remove_spoiled()
        failed = self._segments.note_failed()
        if not failed:
            return ()  # no segment could be begun: all written batches are whole
        items: list[IItem] = []
        for known, envelope in self._to_move(failed):
            if known.is_in_silo or known.content is not None:
                items.append(self._move(known, envelope, known.content))
        return items or [epoch_item(self._naming.epoch, _ignore)]  # a failed record must be denied

    def _to_move(self, failed: Collection[int]) -> list[tuple[LogMessage, LogEnvelope]]:
        """Envelopes in these segments, or with a content there, that some entry will stay in."""
        found = []
        for known in self._working_set.messages.values():
            for envelope in known.envelopes():
                if envelope.segment not in failed and envelope.content_segment not in failed:
                    continue
                if (envelope.left or envelope.unsure) and envelope not in self._moving:
                    found.append((known, envelope))
        return found

    def _move(
        self, known: LogMessage, envelope: LogEnvelope, content: bytes | None, place: ContentPlace | None = None
    ) -> MoveItem:
        self._moving[envelope] = _lies(envelope)
        item = MoveItem(self._owner, known, envelope, self._commits.applied_sequence + 1, self._now(), content, place)
        item.begin()
        self._ledger.begin_move(item)
        return item

    def move_on(self, envelopes: Collection[LogEnvelope]) -> None:
        """Write these envelopes again; their contents stay where they are."""
        wanted, failed = set(envelopes), self._segments.failed
        for known in self._working_set.messages.values():
            for envelope in known.envelopes():
                if envelope not in wanted or envelope in self._moving or envelope.content_segment in failed:
                    continue
                if not (envelope.left or envelope.unsure):
                    continue  # its finish record is on the way
                if known.is_in_silo:
                    self._commits.ride(self._move(known, envelope, None))
                elif envelope.content_segment == known.content_segment:
                    known.know_checksum()
                    place = known.content_place()
                    self._holds.add(place.segment, known.message.stored_bytes)
                    self._commits.ride(self._move(known, envelope, None, place))

    async def drain(self) -> None:
        """Move what is left in failed segments."""
        if self._is_draining or not self._segments.failed or self._commits.trouble is not None:
            return
        self._is_draining = True
        try:
            for known, envelope in self._to_move(self._segments.failed):
                item = await self._prepare(known, envelope, self._segments.failed)
                if item is not None:
                    self._commits.append(item)
        finally:
            self._is_draining = False

    async def prepare(self, numbers: Collection[int], most_bytes: int, most_count: int) -> int:
        """Prepare moves of what is in memory, and lies in these segments or has its content there; about so many bytes and
        envelopes. They go with the batches to come. Return how many there are."""
        size_bytes, count = 0, 0
        for known, envelope in self._to_move(numbers):
            if size_bytes >= most_bytes or count >= most_count or self._commits.trouble is not None:
                break
            item = await self._prepare(known, envelope, numbers)
            if item is not None:
                self._prepared.append(item)
                size_bytes, count = size_bytes + item.size_bytes, count + 1
        return count

    def push(self) -> None:
        """Write the prepared moves that no batch has taken along."""
        while self._prepared:
            self._commits.append(self._prepared.popleft())

    async def _prepare(self, known: LogMessage, envelope: LogEnvelope, numbers: Collection[int]) -> MoveItem | None:
        """The move of an envelope out of these segments, with its content if that lies there. None: not now."""
        content: bytes | None = None
        place: ContentPlace | None = None
        if not known.is_in_silo:
            if known.content_segment not in numbers:
                known.know_checksum()
                place = known.content_place()
            elif any(other in self._moving for other in known.envelopes()):
                return None  # one of them takes the content along, the others refer to it later
            else:
                content = known.content
                try:
                    content = await self._contents.read_from_log(known) if content is None else content
                except StorageError as error:
                    self._log.warn("A message can't be moved out of its segment: {error}", error=error)
                    return None
                if known.content_segment not in numbers:
                    return None  # it was moved meanwhile
        if envelope in self._moving or envelope not in known.envelopes() or not known.entries:
            return None
        if not (envelope.left or envelope.unsure):
            return None  # its finish record is on the way
        if place is not None:
            self._holds.add(place.segment, known.message.stored_bytes)
        return self._move(known, envelope, content, place)


def _lies(envelope: LogEnvelope) -> tuple[int, int]:
    return envelope.segment, envelope.content_segment


def _ignore() -> None:
    """Nothing waits for the record."""
