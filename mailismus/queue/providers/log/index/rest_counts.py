"""What a count of resting entries need not read: pieces of which the amounts say all, at one moment. Pure.

The other pieces are read: those of which nothing is known yet, and those with messages that came with several recipients.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping

import attrs

from mailismus.queue.interface import Area
from mailismus.queue.providers.log.index.amount import NOTHING, RestAmount
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.sums import AreaSums, LiveLines


@attrs.frozen
class SegmentRest:
    """What rests in one segment. `amounts`: of the pieces that need not be read; `stretches`: begin and end of the others
    (0: that of the segment), those that follow each other as one."""

    number: int
    amounts: dict[Area, RestAmount] = attrs.field(factory=lambda: dict.fromkeys(Area, NOTHING))
    stretches: list[tuple[int, int]] = attrs.field(factory=list)

    def add_to(self, sums: Mapping[Area, AreaSums]) -> None:
        """Add the amounts to the sums of a count."""
        for area, amount in self.amounts.items():
            sums[area].add(LiveLines(amount.entries, amount.lone, amount.lone_bytes, {}))

    def covers(self, offset: int) -> bool:
        """Whether the batch at this offset need not be read."""
        at = bisect_right(self.stretches, (offset, 1 << 62)) - 1
        return at < 0 or 0 < self.stretches[at][1] <= offset


def _is_counted(piece: Piece) -> bool:
    return piece.is_counted


class RestCounts:
    """The counts of what rests, at this moment. `says_all`: whether the amounts of a piece say all that must be known."""

    def __init__(self, resting: Resting, says_all: Callable[[Piece], bool] = _is_counted) -> None:
        self._segments = {number: SegmentRest(number) for number in resting.segments()}
        for piece in resting.all():
            segment = self._segments[piece.segment]
            if says_all(piece):
                for area, amount in piece.amounts.items():
                    segment.amounts[area] = segment.amounts[area].plus(amount)
                continue
            stretches, end = segment.stretches, resting.end_of(piece) or 0
            if stretches and stretches[-1][1] == piece.begin:
                stretches[-1] = stretches[-1][0], end
            else:
                stretches.append((piece.begin, end))

    def segments(self) -> Iterator[SegmentRest]:
        """Yield what rests in each segment, in order."""
        yield from self._segments.values()

    @property
    def is_all(self) -> bool:
        """Whether nothing need be read."""
        return not any(segment.stretches for segment in self._segments.values())

    def covers(self, segment: int, offset: int) -> bool:
        """Whether a batch need not be read; one in a segment in which nothing rested then is none that counts."""
        found = self._segments.get(segment)
        return found is None or found.covers(offset)
