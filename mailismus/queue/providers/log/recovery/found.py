"""What a start finds: work that was going on, garbage that is not durably marked, and what it has not read yet. Blocks.

The start's own barrier comes first: an envelope of the last batch lies where that wrote it again.
"""

from __future__ import annotations

import attrs

from mailismus.journal.batch import BLOCK
from mailismus.journal.replay import FoundSegment
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.format.positions import Positions
from mailismus.queue.providers.log.format.record import ContentPlace, LogPlace, LogRecord
from mailismus.queue.providers.log.index.envelope import LogEnvelope, Unmarked
from mailismus.queue.providers.log.index.holds import Holds
from mailismus.queue.providers.log.index.piece import area_of
from mailismus.queue.providers.log.index.working_set import LogMessage
from mailismus.queue.providers.log.read.envelopes import BatchReader, FoundEnvelope, Stretch, envelopes_of
from mailismus.queue.providers.log.recovery.replay import ReplayedLog


@attrs.frozen
class SegmentDamage:
    """What does not check in a segment: begin and end of stretches of bytes; records and lines."""

    segment: FoundSegment
    stretches: list[tuple[int, int]]
    bad: list[bytes]


@attrs.define
class FoundLog:
    """Messages with their envelopes, and what keeps segments."""

    messages: dict[SpoolId, LogMessage] = attrs.field(factory=dict)
    working: set[LogEnvelope] = attrs.field(factory=set)
    unmarked: list[Unmarked] = attrs.field(factory=list)
    holds: Holds = attrs.field(factory=Holds)
    unread: list[tuple[int, int]] = attrs.field(factory=list)
    """Segments that may hold further envelopes, in order: the number of each, and a sequence number before its batches."""
    hints: list[tuple[Area, int]] = attrs.field(factory=list)
    """Segments that are read first: those in which the runners of an area had something to come, the shortest intervals
    first, then those of the suffix."""
    damages: list[SegmentDamage] = attrs.field(factory=list)
    missing: set[LogPlace] = attrs.field(factory=set)
    """Envelopes that work was going on, and that are nowhere."""


def find_messages(replayed: ReplayedLog, positions: Positions | None) -> FoundLog:
    """Find the envelopes that the suffix tells of; the others, from the positions on, are left to be read later. Raises
    OSError."""
    found = FoundLog()
    first = min((place.sequence for place in positions.runners.values()), default=0) if positions is not None else 0
    if replayed.journal.is_doubtful or replayed.bad_records:
        first = 0  # a record of the suffix may be lost: work that was going on is found by its mark
    ignored = positions.ignored if positions is not None else ()
    wanted = [place.sequence for place in replayed.works]
    found.missing.update(place for place, work in replayed.works.items() if not work.is_garbage)
    behind = 0
    led: dict[int, int] = {}
    news: list[int] = []
    for segment in replayed.journal.used:
        assert segment.header is not None
        if segment.header.number in ignored:
            continue
        last = segment.last_sequence
        if any(behind < sequence <= last for sequence in wanted):
            _read(found, replayed, segment, behind)
        if last >= first and last > behind:
            found.unread.append((segment.header.number, behind))
        if last > replayed.horizon:  # what has come since the positions were written
            news.append(segment.header.number)
        for runner, place in positions.runners.items() if positions is not None else ():
            if behind < place.sequence <= last:
                led[runner] = segment.header.number
        behind = max(behind, last)
    if replayed.last_shift is not None:
        sequence, number, _ = replayed.last_shift
        found.unread.append((number, sequence - 1))
        news.append(number)
    found.hints += [(area_of(runner), number) for runner, number in sorted(led.items())]
    found.hints += [(area, number) for number in news for area in Area]
    return found


def _read(found: FoundLog, replayed: ReplayedLog, segment: FoundSegment, behind: int) -> None:
    assert segment.header is not None
    stretch = Stretch(segment.file, segment.header, BLOCK, segment.size_bytes, behind, segment.last_sequence)
    reader, number, works = BatchReader(stretch), segment.header.number, replayed.works
    bad: list[bytes] = []
    shift = replayed.last_shift
    while (batch := reader.next()) is not None:
        lies, by = (number, 0) if shift is None or shift[0] != batch.sequence else shift[1:]
        first = batch.records_offset + by

        def is_wanted(place: LogPlace, record: LogRecord, lies: int = lies, first: int = first) -> bool:
            work = works.get(place)
            if work is not None and work.is_garbage:  # its lines are not needed: there are many of these
                found.unmarked.append(Unmarked(lies, first + record.offset, work.pin))
                return False
            return work is not None

        for one in envelopes_of(batch, number, is_wanted, bad):
            found.missing.discard(one.place)
            _go_on(found, replayed, _moved(one, replayed))
    found.damages.append(SegmentDamage(segment, reader.skipped, bad))


def _go_on(found: FoundLog, replayed: ReplayedLog, lies: FoundEnvelope) -> None:
    """Go on with the work on an envelope."""
    work = replayed.works[lies.place]
    entries = [entry for entry in lies.entries if entry.number not in work.gone]
    if not entries:
        found.unmarked.append(Unmarked(lies.segment, lies.offset, work.pin))
        return
    envelope = LogEnvelope(len(entries))
    envelope.lie(*lies.place, lies.segment, lies.offset, lies.record_bytes)
    envelope.work(work.pin)
    found.working.add(envelope)
    found.holds.add(lies.segment, lies.record_bytes)
    known = found.messages.get(lies.message.spool_id)
    if known is None:
        known = found.messages[lies.message.spool_id] = LogMessage(lies.message, entries, envelope)
        known.rest()
    else:
        for former in known.join(entries, envelope):
            found.working.discard(former)
            found.unmarked.append(Unmarked(former.segment, former.offset, former.pin))
            found.holds.drop(former.segment, former.record_bytes)
            found.holds.drop(former.content_segment, former.content_bytes)
    if lies.content is None:
        known.put_in_silo()
    else:
        size_bytes = lies.message.stored_bytes
        envelope.refer(lies.content.segment, lies.content.offset, size_bytes)
        found.holds.add(lies.content.segment, size_bytes)
        known.put_in_log(*lies.content)


def _moved(one: FoundEnvelope, replayed: ReplayedLog) -> FoundEnvelope:
    """Where an envelope lies behind the start's own barrier."""
    shift = replayed.last_shift
    if shift is None or one.place.sequence != shift[0]:
        return one
    _, segment, by = shift
    content = one.content
    if content is not None and content.segment == one.segment and content.offset > one.offset:
        content = ContentPlace(segment, content.offset + by, content.checksum)
    return attrs.evolve(one, segment=segment, offset=one.offset + by, content=content)
