"""Counting by a plan: reads the segments that it names, in a process that gets the plan in parts.

Parts beside those about entries in memory (`queue.plan_parts`):

    {"over": [SEGMENT, [offsets of records]]}     envelopes that do not count: in memory, or garbage without its mark
    {"segments": [[FILE NAME, SEGMENT, sequence number before its batches, the last one that counts], ...]}

A segment without a file, or with another number now, was freed meanwhile: nothing in it was live any more. If a plan that is
made later still names it, its file is lost, and is told as a gap. A header that does not check is derived, as by a start.

*Rules*: a part is checked like any input. Of the names in it only segments below the queue's directory are opened, and never
through a symbolic link. In a batch that checks no line is checked again.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator, Mapping

from mailismus.disk.interface import IDisk, close_read
from mailismus.journal.batch import BLOCK, Batch, decode_header, guess_header
from mailismus.journal.replay import named_number
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import FORMAT
from mailismus.queue.gaps import Gaps, gap_of
from mailismus.queue.interface import Area, Summary
from mailismus.queue.plan_parts import MemorySums, list_of, number_of, text_of
from mailismus.queue.providers.log.format.record import ENVELOPES, LogRecordKind, read_records
from mailismus.queue.providers.log.format.version import LOG
from mailismus.queue.providers.log.read.count_plan import PlannedSegment
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch
from mailismus.queue.sums import AreaSums, LiveLines, summary_of

_NUMBERS = re.compile(rb"^.%b ([0-9A-F]{16}) [0-9]+/([0-9]+) [0-9]+ [0-9]+ [0-9]+ ([0-9]+) " % FORMAT, re.MULTILINE)
"""Of a recipient line: spool id, recipients of the envelope, content bytes."""


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
        return summary_of(self._memory.sums, self._gaps.all(), self._memory.refusing)

    def _segments(self, part: Mapping[str, object]) -> Iterator[PlannedSegment]:
        for fields in list_of(part.get("segments", [])):
            name, number, behind, last = list_of(fields)
            segment = PlannedSegment(text_of(name), number_of(number), number_of(behind), number_of(last))
            if os.path.basename(segment.name) != segment.name or not named_number(segment.name) or not self._memory.root:
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
            reader = BatchReader(Stretch(file, header, BLOCK, file.size(), segment.behind, segment.last))
            while (batch := reader.next()) is not None:
                count_batch(batch, self._over.get(segment.number, ()), self._memory.sums)
        finally:
            close_read(file)
        return True

    def _path(self, segment: PlannedSegment) -> str:
        return os.path.join(self._memory.root, LOG, segment.name)

    def _add_gap(self, segment: PlannedSegment, error: OSError) -> None:
        self._gaps.add((gap_of("segment", self._path(segment), error),))


def count_batch(batch: Batch, over: Collection[int], sums: Mapping[Area, AreaSums]) -> None:
    """Count the live envelopes of a batch. `over`: offsets in the file of records that do not count."""
    counts = False
    for record in read_records(batch.records, b"MFRL"):
        if record.kind in ENVELOPES:
            counts = not record.is_marked and batch.records_offset + record.offset not in over
        elif record.kind is not LogRecordKind.LINES:
            continue
        if counts and record.area is not None:
            of_area = sums[record.area]
            for name, recipients, size in _NUMBERS.findall(record.text):
                lone = recipients == b"1"
                sizes = {} if lone else {SpoolId(int(name, 16)): int(size)}
                of_area.add(LiveLines(1, lone, int(size) if lone else 0, sizes))
