"""Counts of the live envelopes in a stretch of a segment: quickly, from heads and lines alone.

*Rules*: the lines of an envelope are those of one message. So its first line tells id, recipients and size, and the others
are counted by their form. A batch in which they have another form is read whole, and counts if its CRC checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import FORMAT
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.format.record import LogPlace, LogRecord
from mailismus.queue.providers.log.read.envelopes import Stretch
from mailismus.queue.providers.log.read.seen import Grouped, grouped
from mailismus.queue.providers.log.read.skim import SkimmedBatch, SkimReader
from mailismus.queue.sums import AreaSums, LiveLines

_LINE = re.compile(rb".%b ([0-9A-F]{16}) [0-9]+/([0-9]+) [0-9]+ [0-9]+ [0-9]+ ([0-9]+) " % FORMAT)
"""Of a recipient line: spool id, recipients of the envelope, content bytes."""

Counts = list[tuple[Area, LiveLines]]


def count_envelopes(stretch: Stretch, over: Collection[int], sums: Mapping[Area, AreaSums]) -> None:
    """Add the unmarked envelopes of a stretch to `sums`. `over`: offsets in the file of records that do not count. Blocks.
    Raises OSError."""
    reader = SkimReader(stretch)
    while (batch := reader.next()) is not None:
        first = batch.records_offset

        def is_live(_: LogPlace, record: LogRecord, first: int = first) -> bool:
            return not record.is_marked and first + record.offset not in over

        counts = count_batch(batch, is_live)
        if counts is None:
            reader.again(batch)
            continue
        for area, lines in counts:
            sums[area].add(lines)


def count_batch(batch: SkimmedBatch, is_wanted: Callable[[LogPlace, LogRecord], bool]) -> Counts | None:
    """Return the counts of the wanted envelopes of a batch; None: it must be read whole."""
    counts: Counts = []
    for group in grouped(batch, is_wanted):
        found = _count_group(group, is_whole=batch.is_whole)
        if found is None:
            return None
        counts += found
    return counts


def _count_group(group: Grouped, *, is_whole: bool) -> Counts | None:
    found: Counts = []
    for record, text in group.lines:
        lines = _count_lines(text, group.head.spool_id)
        if lines is None and not is_whole:
            return None
        if record.area is not None:
            found += [
                (record.area, one) for one in ([lines] if lines is not None else _one_by_one(text, group.head.spool_id))
            ]
    return found


def _count_lines(text: bytes, spool_id: SpoolId) -> LiveLines | None:
    """Count lines of a message by the first of them; None: not all have the form of one."""
    first, count = _LINE.match(text), text.count(b"\n")
    if first is None or text[-1:] != b"\n" or int(first[1], 16) != spool_id:
        return None
    if count > 1 and text.count(b"%b %b " % (FORMAT, first[1])) < count:
        return None
    size = int(first[3])
    return LiveLines(count, count, count * size, {}) if first[2] == b"1" else LiveLines(count, 0, 0, {spool_id: size})


def _one_by_one(text: bytes, spool_id: SpoolId) -> list[LiveLines]:
    """Count those lines that have the form of one, in a batch that checks."""
    counted = (_count_lines(line + b"\n", spool_id) for line in text.split(b"\n")[:-1])
    return [one for one in counted if one is not None]
