"""Counting the live lines of clusters: quickly, a million of them beside deliveries; and their sums (pure).

*Rules*: in a file in which every line has the form of one, no CRC is checked: a damaged line of that form counts until a due
scan finds it. Where the live lines of a file belong to a few messages, the form of a line is its beginning, up to its spool
id. Any other file is counted line by line, as it is read.

Source: `docs/formats/cluster`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import DONE, FORMAT
from mailismus.queue.interface import Area, AreaCount, Gap, Summary
from mailismus.queue.providers.clustered.format.cluster import scan_lines

_NUMBERS = rb"%b ([0-9A-F]{16}) [0-9]+/([0-9]+) [0-9]+ [0-9]+ [0-9]+ ([0-9]+) " % FORMAT
_LIVE_LINE = re.compile(rb"\n[^%b\n]%b" % (DONE, _NUMBERS))
"""From the LF before it on: spool id, recipients of the envelope, content bytes."""
_LONE_LINE = re.compile(rb"\n[^%b\n]%b [0-9A-F]{16} 1/1 [0-9]+ [0-9]+ [0-9]+ ([0-9]+) " % (DONE, FORMAT))
"""The same of a message with one recipient: content bytes."""
_BEGINNING = re.compile(_NUMBERS)
_DONE_LINE = b"\n" + DONE + FORMAT + b" "
_NAME_BYTES = len(_DONE_LINE) + 17
"""From the LF before a line to the space behind its spool id."""

_FEW, _MANY = 6, 50
"""Messages of a cluster that are counted by name, each by a look at all of it; and how many recipients it takes."""

_Numbers = tuple[bytes, bytes, bytes]


class LiveLines(NamedTuple):
    """Counts of the live lines of a cluster. A message with one recipient has one line; the others may have lines in several
    clusters."""

    entries: int
    lone_messages: int
    lone_bytes: int
    sizes: dict[SpoolId, int]
    """Content sizes of the messages that came with several recipients."""


NO_LINES = LiveLines(0, 0, 0, {})


def count_live(data: bytes, committed: int | None, hidden: Collection[int]) -> LiveLines:
    """Count live lines. `data`, `committed`: as in `cluster.read_lines`; `hidden`: offsets of finished lines, whatever their
    state bytes say."""
    if committed is not None and committed < len(data):
        data = data[:committed]
    if data[-1:] != b"\n":
        return _sum(_live_numbers(data, committed, hidden))
    lines = data.count(b"\n") - 1  # the header
    found = None if hidden else _count_quickly(data)
    if found is not None and found.entries == lines:
        return found
    live = lines - data.count(_DONE_LINE)
    if found is not None and found.entries == live:
        return found
    if hidden:
        shown = [(match.start() + 1, match.groups()) for match in _LIVE_LINE.finditer(data)]
        if len(shown) == live:
            return _sum(numbers for offset, numbers in shown if offset not in hidden)
        return _sum(_live_numbers(data, committed, hidden))
    numbers: list[_Numbers] = _LIVE_LINE.findall(data)
    return _sum(numbers if len(numbers) == live else _live_numbers(data, committed, hidden))


def _count_quickly(data: bytes) -> LiveLines | None:
    """Count the live lines that are found quickly: those of messages with one recipient, or those of the first few messages
    where all of these came with many."""
    entries, at = 0, 0
    sizes: dict[SpoolId, int] = {}
    for _ in range(_FEW):
        first = _LIVE_LINE.search(data, at)
        if first is None:
            break
        spool_id, recipient_count, size = first.groups()
        if recipient_count == b"1" and not at:
            lone: list[bytes] = _LONE_LINE.findall(data)
            return LiveLines(len(lone), len(lone), sum(map(int, lone)), {})
        if int(recipient_count) < _MANY:
            return None
        sizes[SpoolId(int(spool_id, 16))] = int(size)
        name = data[first.start() : first.start() + _NAME_BYTES]
        entries += data.count(name, at)
        at = data.rfind(name) + 1
    return LiveLines(entries, 0, 0, sizes)


def _live_numbers(data: bytes, committed: int | None, hidden: Collection[int]) -> Iterator[tuple[bytes, ...]]:
    """Yield the numbers of each live line that passes its check."""
    for offset, is_done, *_ in scan_lines(data, committed):
        if not is_done and offset not in hidden:
            match = _BEGINNING.match(data, offset + 1)
            if match is not None:
                yield match.groups()


def _sum(found: Iterable[tuple[bytes, ...]]) -> LiveLines:
    lines = list(found)
    lone: list[int] = []
    sizes: dict[SpoolId, int] = {}
    for spool_id, recipient_count, size in dict.fromkeys(lines):
        if recipient_count != b"1":
            sizes[SpoolId(int(spool_id, 16))] = int(size)
        elif not lone:
            lone = [int(size) for _, recipient_count, size in lines if recipient_count == b"1"]
    return LiveLines(len(lines), len(lone), sum(lone), sizes)


class AreaSums:
    """Sums of one area. Messages that came with several recipients are kept by id: further lines of them may come."""

    __slots__ = ("entries", "lone_bytes", "lone_messages", "sizes")

    def __init__(self) -> None:
        self.entries = 0
        self.lone_messages = 0
        self.lone_bytes = 0
        self.sizes: dict[SpoolId, int] = {}
        """Content sizes of the messages that came with several recipients."""

    def add(self, found: LiveLines) -> None:
        """Add the counts of more lines."""
        self.entries += found.entries
        self.lone_messages += found.lone_messages
        self.lone_bytes += found.lone_bytes
        self.sizes.update(found.sizes)

    def count(self) -> AreaCount:
        """Return the counts of the area."""
        return AreaCount(self.entries, self.lone_messages + len(self.sizes), self.lone_bytes + sum(self.sizes.values()))


def new_sums() -> dict[Area, AreaSums]:
    """Return empty sums of every area."""
    return {area: AreaSums() for area in Area}


def summary_of(sums: Mapping[Area, AreaSums], gaps: tuple[Gap, ...] = (), refusing: str = "") -> Summary:
    """Return the counts of these sums. A message with entries in two areas counts in both. `gaps`: files that could not be
    read. `refusing`: see `Summary`."""
    return Summary({area: of_area.count() for area, of_area in sums.items()}, not gaps, gaps, refusing)
