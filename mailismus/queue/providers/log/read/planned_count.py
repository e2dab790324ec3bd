"""Counting by a plan: reads the segments that it names, in a process that gets the plan in parts.

Parts beside those about entries in memory (`queue.plan_parts`):

    {"over": [SEGMENT, [offsets of records]]}     envelopes that do not count: in memory, or garbage without its mark
    {"segments": [[FILE NAME, SEGMENT, sequence number before its batches, the last one that counts], ...]}

A segment without a file, or with another number now, was freed meanwhile: nothing in it was live any more.

*Rules*: a part is checked like any input. Of the names in it only segments below the queue's directory are opened, and never
through a symbolic link. In a batch that checks no line is checked again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

from mailismus.disk.interface import IDisk, close_read
from mailismus.journal.batch import BLOCK, Batch, decode_header
from mailismus.journal.replay import named_number
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import FORMAT
from mailismus.queue.gaps import Gaps, gap_of
from mailismus.queue.interface import Area, Summary
from mailismus.queue.plan_parts import MemorySums, list_of, number_of, text_of
from mailismus.queue.providers.log.format.record import ENVELOPES, LogRecordKind, read_records
from mailismus.queue.providers.log.format.version import LOG
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
        self._found = self._missing = 0
        self._gaps = Gaps()

    def add(self, part: Mapping[str, object]) -> None:
        """Count a part. Raises `ValueError` for one that is malformed, and OSError where a segment exists and can't be
        read."""
        try:
            self._memory.add(part)
            if "over" in part:
                number, offsets = list_of(part["over"])
                self._over.setdefault(number_of(number), set()).update(map(number_of, list_of(offsets)))
            for fields in list_of(part.get("segments", [])):
                name, number, behind, last = list_of(fields)
                self._count(text_of(name), number_of(number), number_of(behind), number_of(last))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no part of a plan: {error}") from None

    @property
    def is_unsure(self) -> bool:
        """Never: a segment that is gone had nothing live."""
        return False

    def check(self, part: Mapping[str, object]) -> None:
        """Not needed."""

    def summary(self) -> Summary:
        """Return all counts. Raises FileNotFoundError if the plan had segments and none of them has a file here (this
        process does not see the directory), or if no part was added."""
        if not self._memory.root or (self._missing and not self._found):
            raise FileNotFoundError(2, "no segment of the log is here", self._memory.root)
        return summary_of(self._memory.sums, self._gaps.all(), self._memory.refusing)

    def _count(self, name: str, number: int, behind: int, last: int) -> None:
        if os.path.basename(name) != name or not named_number(name) or not self._memory.root:
            raise ValueError("no segment's name, or nothing said where it lies")
        path = os.path.join(self._memory.root, LOG, name)
        try:
            file = self._disk.open(path)
        except FileNotFoundError:
            self._missing += 1
            return
        except OSError as error:
            self._gaps.add((gap_of("segment", path, error),))
            return
        try:
            header = decode_header(file.read_at(0, BLOCK))
            if header is None or header.number != number:
                self._missing += 1
                return
            self._found += 1
            reader = BatchReader(Stretch(file, header, BLOCK, file.size(), behind, last))
            while (batch := reader.next()) is not None:
                count_batch(batch, self._over.get(number, ()), self._memory.sums)
        finally:
            close_read(file)


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
