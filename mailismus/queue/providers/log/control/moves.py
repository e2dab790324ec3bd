"""Moves: envelopes of failed segments, and contents there, are written again in a fresh one.

*Rules*: what is in memory is written again at once, before any other mail; the rest is read first, beside all other work. A
failed segment is removed when nothing in it is needed (`control.rounds`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from mailismus.errors import StorageError
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.spool_ids import Naming
from mailismus.queue.providers.log.commit.items import ILogOwner, MoveItem, epoch_item
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.format.record import ContentPlace
from mailismus.queue.providers.log.index.envelope import LogEnvelope
from mailismus.queue.providers.log.index.holds import Holds
from mailismus.queue.providers.log.index.working_set import LogMessage, WorkingSet
from mailismus.queue.providers.log.read.content import LogContents
from mailismus.spool.draft import RefusedDrafts


class Moves:
    """Moves of one queue (`journal.batch_events.IBatchListener`)."""

    _log = Logger()

    def __init__(
        self,
        working_set: WorkingSet,
        segments: LogSegments,
        commits: GroupCommit,
        naming: Naming,
        owner: ILogOwner,
        contents: LogContents,
        refused: RefusedDrafts,
        holds: Holds,
    ) -> None:
        self._working_set, self._segments, self._commits, self._naming = working_set, segments, commits, naming
        self._owner, self._contents, self._refused, self._holds = owner, contents, refused, holds
        self._moving: dict[LogEnvelope, tuple[int, int]] = {}
        """Envelopes whose move was asked for, with segment and content's segment at that time."""
        self._is_draining = False

    def on_durable(self) -> None:
        self._refused.drop()
        self._segments.remove_spoiled()
        if self._moving:
            self._moving = {envelope: was for envelope, was in self._moving.items() if _lies(envelope) == was}

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
        """Envelopes in failed segments, or with a content there, that some entry will stay in."""
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
        item = MoveItem(self._owner, known, envelope, self._commits.applied_sequence + 1, content, place)
        item.begin()
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
                    self._holds.add(place.segment)
                    self._commits.ride(self._move(known, envelope, None, place))

    async def drain(self) -> None:
        """Move what is left in failed segments."""
        if self._is_draining or not self._segments.failed or self._commits.trouble is not None:
            return
        self._is_draining = True
        try:
            for known, envelope in self._to_move(self._segments.failed):
                content = known.content
                if content is None and not known.is_in_silo:
                    try:
                        content = await self._contents.read_from_log(known)
                    except StorageError as error:
                        self._log.warn("A message can't be moved out of a failed segment: {error}", error=error)
                        continue
                if envelope not in self._moving and envelope in known.envelopes() and known.entries:
                    self._commits.append(self._move(known, envelope, content))
        finally:
            self._is_draining = False

    def drain_soon(self) -> Deferred[None]:
        """As `drain`."""
        return Deferred.fromCoroutine(self.drain())


def _lies(envelope: LogEnvelope) -> tuple[int, int]:
    return envelope.segment, envelope.content_segment


def _ignore() -> None:
    """Nothing waits for the record."""
