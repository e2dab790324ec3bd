"""What a start finds: the messages that go on, and the garbage that is not durably marked. Blocks.

The start's own barrier comes first: an envelope of the last batch lies where that wrote it again.
"""

from __future__ import annotations

from itertools import zip_longest

import attrs

from mailismus.journal.replay import FoundSegment
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.log.format.positions import Positions
from mailismus.queue.providers.log.format.record import ContentPlace, Place
from mailismus.queue.providers.log.index.envelope import Envelope, Unmarked
from mailismus.queue.providers.log.index.holds import Holds
from mailismus.queue.providers.log.index.working_set import LogMessage
from mailismus.queue.providers.log.recovery.envelopes import FoundEnvelope, read_envelopes
from mailismus.queue.providers.log.recovery.replay import ReplayedLog


@attrs.define
class FoundQueue:
    """Messages with their envelopes, and what keeps segments."""

    messages: dict[SpoolId, LogMessage] = attrs.field(factory=dict)
    working: set[Envelope] = attrs.field(factory=set)
    unmarked: list[Unmarked] = attrs.field(factory=list)
    holds: Holds = attrs.field(factory=Holds)
    bad: list[bytes] = attrs.field(factory=list)
    """Lines and records that do not check."""


def find_messages(replayed: ReplayedLog, positions: Positions | None) -> FoundQueue:
    """Read the log from the positions on, and wherever the suffix points. Raises OSError."""
    found = FoundQueue()
    first = min(positions.runners.values(), default=Place(0, 0)) if positions is not None else Place(0, 0)
    ignored = positions.ignored if positions is not None else ()
    wanted = sorted(place.sequence for place in replayed.works)
    used, behind = replayed.journal.used, 0
    for segment, following in zip_longest(used, used[1:]):
        assert segment.header is not None
        if segment.header.number in ignored:
            continue
        begins = segment.header.first_sequence
        ends = following.header.first_sequence if following is not None and following.header is not None else 1 << 64
        if ends <= first.sequence and not any(begins <= sequence < ends for sequence in wanted):
            continue
        _read(found, replayed, segment, first, behind)
        behind = max(behind, segment.last_sequence)
    return found


def _read(found: FoundQueue, replayed: ReplayedLog, segment: FoundSegment, first: Place, behind: int) -> None:
    for one in read_envelopes(segment, replayed.works, first, behind, found.bad):
        lies = _moved(one, replayed)
        work = replayed.works.get(lies.place)
        entries = [entry for entry in lies.entries if work is None or entry.number not in work.gone]
        if work is not None and (work.is_garbage or not entries):
            found.unmarked.append(Unmarked(lies.segment, lies.offset, work.pin))
            continue
        envelope = Envelope(len(entries))
        envelope.lie(*lies.place, lies.segment, lies.offset)
        if work is not None:
            envelope.work(work.pin)
            found.working.add(envelope)
        found.holds.add(lies.segment)
        known = found.messages.get(lies.message.spool_id)
        if known is None:
            known = found.messages[lies.message.spool_id] = LogMessage(lies.message, entries, envelope)
        else:
            known.join(entries, envelope)
        if lies.content is None:
            known.put_in_silo()
        else:
            envelope.refer(lies.content.segment)
            found.holds.add(lies.content.segment)
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
