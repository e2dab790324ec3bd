"""Plan of a count: the counts of what is in memory, and the segments to read for what rests.

The plan describes the moment when it was made. Entries that are moved, retried or accepted later lie behind its last
sequence numbers, so no entry is counted twice. What is marked meanwhile is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mailismus.queue.interface import Area
from mailismus.queue.plan_parts import PART_NUMBERS, memory_parts
from mailismus.queue.providers.log.format.version import NAME
from mailismus.queue.sums import AreaSums

PART_SEGMENTS = 2
"""Segments in one part: as a rule 64 MiB to read."""


class PlannedSegment(NamedTuple):
    """A segment to count. `behind`, `last`: a sequence number before its batches, and of the last one that counts."""

    name: str
    number: int
    behind: int
    last: int


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
    for number, offsets in over.items():
        for at in range(0, len(offsets), PART_NUMBERS):
            yield {"over": [number, offsets[at : at + PART_NUMBERS]]}
    for at in range(0, len(segments), PART_SEGMENTS):
        yield {"segments": [list(one) for one in segments[at : at + PART_SEGMENTS]]}
