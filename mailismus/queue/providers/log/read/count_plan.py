"""Plan of a count: the counts of what is in memory, and of each segment what its pieces say, and which stretches to read.

The plan describes the moment when it was made. Entries that are moved, retried or accepted later lie behind its last
sequence numbers, so no entry is counted twice. What is marked meanwhile in a stretch is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mailismus.queue.interface import Area
from mailismus.queue.plan_parts import PART_NUMBERS, memory_parts
from mailismus.queue.providers.log.format.version import NAME
from mailismus.queue.sums import AreaSums

PART_SEGMENTS = 2
"""Segments in one part: at most, as a rule, 64 MiB to read."""

Numbers = tuple[int, int, int]
"""Entries; of these messages with one recipient; bytes of those."""


class PlannedSegment(NamedTuple):
    """A segment to count. `behind`, `last`: a sequence number before its batches, and of the last one that counts."""

    name: str
    number: int
    behind: int
    last: int
    stretches: Sequence[tuple[int, int]]
    """Offsets of the batches to read: begin and end of each stretch; 0: that of the segment."""
    amounts: Mapping[Area, Numbers]
    """What rests elsewhere in it."""

    def fields(self) -> list[object]:
        """Return it as a member of a part."""
        amounts = [[area.value, *numbers] for area, numbers in self.amounts.items() if any(numbers)]
        return [self.name, self.number, self.behind, self.last, [list(one) for one in self.stretches], amounts]


class LogCountingPlan:
    """An `ICountingPlan`, used once. `sums`: of what is in memory; `over`: offsets, by segment, of records that do not
    count."""

    provider = NAME

    def __init__(
        self,
        root: str,
        sums: Mapping[Area, AreaSums],
        segments: Sequence[PlannedSegment],
        over: Mapping[int, Sequence[int]],
        refusing: str,
    ) -> None:
        """`root`: the queue's directory; `refusing`: see `Summary`."""
        self._parts = _make_parts(root, sums, segments, over, refusing)

    def next(self) -> Mapping[str, object] | None:
        """See `ICountingPlan`; `planned_count.LogPlanCounter` counts by the parts."""
        return next(self._parts, None)


def _make_parts(
    root: str,
    sums: Mapping[Area, AreaSums],
    segments: Sequence[PlannedSegment],
    over: Mapping[int, Sequence[int]],
    refusing: str,
) -> Iterator[Mapping[str, object]]:
    yield from memory_parts(root, sums, refusing)
    for one in segments:
        offsets = over.get(one.number, ()) if one.stretches else ()
        for at in range(0, len(offsets), PART_NUMBERS):
            yield {"over": [one.number, offsets[at : at + PART_NUMBERS]]}
    for at in range(0, len(segments), PART_SEGMENTS):
        yield {"segments": [one.fields() for one in segments[at : at + PART_SEGMENTS]]}
