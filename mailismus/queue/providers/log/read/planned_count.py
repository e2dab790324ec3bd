"""Counting by a plan: reads the segments that it names, in a process that gets the plan in parts.

Parts beside those about entries in memory (`queue.plan_parts`):

    {"over": [SEGMENT, [offsets of records]]}     envelopes that do not count: in memory, or garbage without its mark
    {"segments": [[FILE NAME, SEGMENT, BEHIND, LAST, STRETCHES, AMOUNTS], ...]}

BEHIND is a sequence number before the segment's batches, LAST that of the last one that counts. STRETCHES are offsets,
[begin, end] of each, 0 for the segment's end: what is live there is counted from the file. AMOUNTS, [AREA, entries, messages
with one recipient, bytes of those] of each area, are what the server knows of the rest of it.

A segment without a file, or with another number now, was freed meanwhile: nothing in it is live any more, and what the
server knew of it counts. If a plan that is made later still names it, its file is lost, and is told as a gap. A header that
does not check is derived, as by a start.

*Rules*: a part is checked like any input. Of the names in it only segments below the queue's directory are opened, and never
through a symbolic link. Contents are not read, nor is the CRC of a batch whose records have the form of such: damage in a
line that keeps its form counts until the server reads it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping

from mailismus.disk.interface import IDisk, close_read
from mailismus.journal.batch import BLOCK, decode_header, guess_header
from mailismus.journal.replay import SUFFIX
from mailismus.queue.gaps import Gaps, gap_of
from mailismus.queue.interface import Area, Summary
from mailismus.queue.plan_parts import MemorySums, list_of, number_of, text_of
from mailismus.queue.providers.log.format.version import LOG
from mailismus.queue.providers.log.read.count_plan import Numbers, PlannedSegment
from mailismus.queue.providers.log.read.envelopes import Stretch
from mailismus.queue.providers.log.read.live_count import count_envelopes
from mailismus.queue.sums import LiveLines, summary_of


class LogPlanCounter:
    """Counts by the parts of a plan, in their order (`IPlanCounter`)."""

    def __init__(self, disk: IDisk) -> None:
        self._disk = disk
        self._memory = MemorySums()
        self._over: dict[int, set[int]] = {}
        self._found = 0
        self._missing: dict[int, PlannedSegment] = {}
        self._gaps = Gaps()

    def add(self, part: Mapping[str, object]) -> None:
        """Count a part. Raises `ValueError` for one that is malformed, and OSError where a segment exists and can't be
        read."""
        try:
            self._memory.add(part)
            if "over" in part:
                number, offsets = list_of(part["over"])
                self._over.setdefault(number_of(number), set()).update(map(number_of, list_of(offsets)))
            for segment in self._segments(part):
                if not self._count(segment):
                    self._missing[segment.number] = segment
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no part of a plan: {error}") from None

    @property
    def is_unsure(self) -> bool:
        """Whether some segments had no file. A plan made now names those of them that were not freed; pass its parts to
        `check`."""
        return bool(self._missing and self._found)

    def check(self, part: Mapping[str, object]) -> None:
        """Check a part of such a plan. Raises as `add`."""
        try:
            for segment in self._segments(part):
                was_missing = self._missing.pop(segment.number, None)
                if was_missing is not None and not self._count(was_missing):
                    self._add_gap(was_missing, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no part of a plan: {error}") from None

    def summary(self) -> Summary:
        """Return all counts. Raises FileNotFoundError if the plan had segments and none of them has a file here (this
        process does not see the directory), or if no part was added."""
        if not self._memory.root or (self._missing and not self._found):
            raise FileNotFoundError(2, "no segment of the log is here", self._memory.root)
        for freed in self._missing.values():
            self._add(freed)
        self._missing = {}
        return summary_of(self._memory.sums, self._gaps.all(), self._memory.refusing)

    def _segments(self, part: Mapping[str, object]) -> Iterator[PlannedSegment]:
        for fields in list_of(part.get("segments", [])):
            name, number, behind, last, stretches, amounts = list_of(fields)
            segment = PlannedSegment(
                *(text_of(name), number_of(number), number_of(behind), number_of(last)),
                [_two(stretch) for stretch in list_of(stretches)],
                dict(_amount(one) for one in list_of(amounts)),
            )
            if os.path.basename(segment.name) != segment.name or not segment.name.endswith(SUFFIX) or not self._memory.root:
                raise ValueError("no segment's name, or nothing said where it lies")
            yield segment

    def _count(self, segment: PlannedSegment) -> bool:
        """Count what is live in a segment, or note a gap. Return whether it is there."""
        try:
            file = self._disk.open(self._path(segment))
        except FileNotFoundError:
            return False
        except OSError as error:
            self._add_gap(segment, error)
            return True
        try:
            header = decode_header(file.read_at(0, BLOCK))
            if header is None:
                header = guess_header(file.read_at(0, file.size()), segment.number)
            if header is None:
                self._add_gap(segment, OSError("neither header nor first batch check"))
                return True
            if header.number != segment.number:
                return False
            self._found += 1
            over, size = self._over.get(segment.number, set()), file.size()
            for begin, end in segment.stretches:
                stretch = Stretch(file, header, max(BLOCK, begin), min(end or size, size), segment.behind, segment.last)
                count_envelopes(stretch, over, self._memory.sums)
            self._add(segment)
        finally:
            close_read(file)
        return True

    def _path(self, segment: PlannedSegment) -> str:
        return os.path.join(self._memory.root, LOG, segment.name)

    def _add_gap(self, segment: PlannedSegment, error: OSError) -> None:
        self._gaps.add((gap_of("segment", self._path(segment), error),))

    def _add(self, segment: PlannedSegment) -> None:
        """Add what the server knows of a segment."""
        for area, (entries, messages, size_bytes) in segment.amounts.items():
            self._memory.sums[area].add(LiveLines(entries, messages, size_bytes, {}))


def _two(value: object) -> tuple[int, int]:
    begin, end = list_of(value)
    return number_of(begin), number_of(end)


def _amount(value: object) -> tuple[Area, Numbers]:
    area, entries, messages, size_bytes = list_of(value)
    return Area(area), (number_of(entries), number_of(messages), number_of(size_bytes))
