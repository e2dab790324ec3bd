"""Which way to make a barrier durable: the decision, from what the ways have cost lately (pure).

    files   each file and directory is synced, several at a time: costs more the more there are
    whole   one sync of the file system: costs about the same for any number, and what other programs have written

What a way costs changes with the disk and with what other programs write to it, and is known only of the way that was taken.
So the dearer way is tried again, the later the more it would cost: trials cost about a hundredth of the time. Costs are kept
by sizes of barriers, for neither grows in proportion.

*Rules*: a sync of the file system fails for a write of any program. After a failure files are synced for `DISTRUST_S`: so
its own failures, and no others, count.
"""

from __future__ import annotations

import enum

import attrs

FEW = 16
"""More files and directories than these are synced by the file system, until it is known what that costs."""
TRIAL_SHARE = 100
"""A way that is expected to cost some time more than the other is not tried before so many times that have passed,"""
TRIAL_S = 1.0
"""nor before this time has."""
DISTRUST_S = 60.0
WEIGHT = 0.5
"""Of the last cost, in what is expected."""


class SyncWay(enum.Enum):
    """How the files and directories of a barrier become durable."""

    FILES = "each file"
    WHOLE = "the file system at once"


@attrs.define
class _Costs:
    """Of barriers of about one size: what the ways cost in seconds, as far as is known, and when they were taken last."""

    expected_s: dict[SyncWay, float] = attrs.Factory(dict)
    taken_at: dict[SyncWay, float] = attrs.Factory(dict)


class WayChoice:
    """What the ways have cost one queue. Times in seconds, of a clock that does not jump."""

    def __init__(self, now: float, *, has_whole: bool) -> None:
        """`has_whole`: the file system can be synced at once, and tells of every failure."""
        self._has_whole = has_whole
        self._costs: dict[int, _Costs] = {}
        self._began_at = self._distrusted_until = now

    def choose(self, count: int, now: float) -> SyncWay:
        """The way for a barrier of so many files and directories."""
        if not self._has_whole or now < self._distrusted_until:
            return SyncWay.FILES
        costs = self._of(count)
        first, other = (SyncWay.WHOLE, SyncWay.FILES) if count > FEW else (SyncWay.FILES, SyncWay.WHOLE)
        first_s, other_s = costs.expected_s.get(first), costs.expected_s.get(other)
        if first_s is not None and other_s is not None and other_s < first_s:
            first, other = other, first
        more_s = 0.0 if first_s is None or other_s is None else abs(first_s - other_s)
        rested_s = now - costs.taken_at.get(other, self._began_at)
        return other if rested_s > max(TRIAL_S, TRIAL_SHARE * more_s) else first

    def note(self, way: SyncWay, count: int, took_s: float, now: float) -> None:
        """This way of a barrier of so many took so long."""
        costs = self._of(count)
        costs.taken_at[way] = now
        if took_s > 0:
            before_s = costs.expected_s.get(way, took_s)
            costs.expected_s[way] = before_s + (took_s - before_s) * WEIGHT

    def distrust(self, now: float) -> None:
        """A sync of the file system failed."""
        self._distrusted_until = now + DISTRUST_S

    def _of(self, count: int) -> _Costs:
        """Of sizes from a power of two up to the next."""
        return self._costs.setdefault(count.bit_length(), _Costs())
