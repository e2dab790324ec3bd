"""What a start believes: which batches count, what the working suffix says, and which envelopes live.

In step with `journal.replay`, and `recovery.replay` and `recovery.found` of the provider.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from tests.durability.log_model.state import (
    Batch,
    Delivery,
    Envelope,
    Finish,
    Garbage,
    Header,
    Known,
    Moved,
    Place,
    Positions,
    Setting,
    Start,
)
from tests.durability.model.disk import Disk, Key
from tests.durability.model.records import TORN
from tests.durability.model.search import Broken

MOST = 10**9


class Segment(NamedTuple):
    """A segment that counts: its header, the batches that a later header does not deny, and those that it does."""

    header: Header
    batches: tuple[Batch, ...]
    denied: tuple[Batch, ...]


class Found(NamedTuple):
    """A start's knowledge before its own barrier. `number`: the highest of a segment."""

    segments: tuple[Segment, ...]
    last: Batch | None
    """The last batch, with its marks."""
    positions: Positions | None
    horizon: int
    number: int
    envelopes: dict[Place, Known]
    garbage: frozenset[Garbage]


class _Work(NamedTuple):
    """What the suffix says about an envelope."""

    pin: int
    is_garbage: bool
    gone: frozenset[int]


def recover(disk: Disk, setting: Setting) -> Found:
    """What a start believes. Raises `Broken` where a crash looks like damage."""
    found = segments_of(disk, setting)
    positions = _positions(disk, setting)
    horizon = max([0, *(one.header.horizon for one in found)])
    if positions is not None:
        horizon = max(horizon, positions.suffix - 1)
    expected, last = horizon + 1, None
    for one in found:
        for batch in one.batches:
            if batch.sequence > expected:
                raise Broken(f"I8: batches are missing before {batch.sequence}")
            expected = max(expected, batch.sequence + 1)
            marks = [at for at in range(len(batch.records)) if is_marked(disk, one.header.number, batch, at)]
            last = batch._replace(marked=frozenset(marks))
    works = _replay(found, horizon, setting)
    envelopes, garbage = _envelopes(disk, found, works, positions, last)
    number = max([0, *(cast(int, key[1]) for key in disk if key[0] == "H")])
    return Found(tuple(found), last, positions, horizon, number, envelopes, frozenset(garbage))


def segments_of(disk: Disk, setting: Setting) -> list[Segment]:
    """Those that count, in order. A header counts with a batch behind it alone."""
    found: list[tuple[Header, list[Batch]]] = []
    for key in sorted(key for key in disk if key[0] == "H"):
        header = disk.now(*key)
        if not isinstance(header, Header):
            continue
        slots = [disk.now("B", key[1], slot) for slot in range(setting.scenario.slots)]
        batches = [batch for batch in slots if isinstance(batch, Batch) and batch.sequence >= header.first]
        if batches:
            found.append((header, batches))
    out = []
    for at, (header, batches) in enumerate(found):
        limit = min([later.last_good for later, _ in found[at + 1 :]], default=MOST)
        good = tuple(batch for batch in batches if batch.sequence <= limit)
        out.append(Segment(header, good, tuple(batch for batch in batches if batch.sequence > limit)))
    return out


def _positions(disk: Disk, setting: Setting) -> Positions | None:
    """The newer block that checks."""
    blocks = [disk.now("P", at) for at in range(2)]
    if TORN in blocks and not any(isinstance(block, Positions) for block in blocks):
        raise Broken("I8: no positions check")
    return max((block for block in blocks if isinstance(block, Positions)), default=None)


def _replay(found: list[Segment], horizon: int, setting: Setting) -> dict[Place, _Work]:
    """On which envelopes work was going on, and which are garbage."""
    works: dict[Place, _Work] = {}
    moved: dict[Place, Place] = {}

    def stands_for(place: Place, sequence: int = 0) -> tuple[Place, int]:
        while place in moved:
            place = moved[place]
            sequence = min(sequence, place[0])
        return place, sequence

    for one in found:
        for batch in one.batches:
            if batch.sequence <= horizon:
                continue
            moving: Place | None = None
            for at, record in enumerate(batch.records):
                if isinstance(record, Moved):
                    moving = record.place
                elif isinstance(record, Envelope) and moving is not None:
                    (old, _), new = stands_for(moving), (batch.sequence, at)
                    if old in works:
                        works[new] = works[old]
                    works[old] = _Work(batch.sequence, True, frozenset())
                    moved[old] = new
                    moving = None
                elif isinstance(record, Start | Delivery | Finish):
                    place, pin = stands_for(record.place, batch.sequence)
                    if "work keeps the moves that lead to it" in setting.without:
                        pin = batch.sequence
                    work = works.get(place, _Work(pin, False, frozenset()))
                    gone = work.gone | set(record.recipients) if isinstance(record, Delivery) else work.gone
                    works[place] = _Work(work.pin, work.is_garbage or isinstance(record, Finish), gone)
    return works


def _envelopes(
    disk: Disk, found: list[Segment], works: dict[Place, _Work], positions: Positions | None, last: Batch | None
) -> tuple[dict[Place, Known], set[Garbage]]:
    """The live ones by place, and those that are garbage."""
    first = positions.first if positions is not None else 0
    envelopes: dict[Place, Known] = {}
    garbage: set[Garbage] = set()
    missing = {place for place, work in works.items() if not work.is_garbage}
    for one in found:
        number = one.header.number
        is_ignored = positions is not None and number in positions.ignored
        is_read = bool(one.batches) and one.batches[-1].sequence >= first
        for batch in one.batches:
            if is_ignored and (last is None or batch.sequence != last.sequence):  # the last one a start writes again
                continue
            for at, record in enumerate(batch.records):
                if not isinstance(record, Envelope):
                    continue
                place = batch.sequence, at
                work = works.get(place)
                content = record.content or number
                if work is None:
                    if (is_read or (last is not None and batch.sequence == last.sequence)) and not is_marked(
                        disk, number, batch, at
                    ):
                        everyone = frozenset(recipient for recipient, _ in record.entries)
                        envelopes[place] = Known(record.message, record.entries, everyone, place, number, content)
                    continue
                missing.discard(place)
                entries = tuple(entry for entry in record.entries if entry[0] not in work.gone)
                if work.is_garbage or not entries:
                    garbage.add(Garbage(number, place, work.pin))
                    continue
                here = frozenset(recipient for recipient, _ in entries)
                envelopes[place] = Known(record.message, entries, here, place, number, content, work.pin, True)
    if missing:
        raise Broken(f"I8: work was going on on envelopes that are nowhere: {sorted(missing)}")
    return envelopes, garbage


def is_marked(disk: Disk, segment: int, batch: Batch, at: int) -> bool:
    """Whether this envelope of the batch has a mark."""
    return at in batch.marked or bool(disk.now("K", segment, (batch.sequence, at)))


def denied_marks(current: int, segments: list[Segment]) -> frozenset[Key]:
    """Marks of the envelopes in denied batches, but for those of the current segment."""
    return frozenset(
        ("K", one.header.number, (batch.sequence, at))
        for one in segments
        if one.header.number != current
        for batch in one.denied
        for at, record in enumerate(batch.records)
        if isinstance(record, Envelope)
    )
