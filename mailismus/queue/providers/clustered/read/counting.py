"""Counting the live lines of clusters: quickly, a million of them beside deliveries (pure).

*Rules*: in a file in which every line has the form of one, no CRC is checked: a damaged line of that form counts until a due
scan finds it. Where the live lines of a file belong to a few messages, the form of a line is its beginning, up to its spool
id. Any other file is counted line by line, as it is read.

Source: `docs/formats/cluster`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import DONE, FORMAT
from mailismus.queue.providers.clustered.format.cluster import scan_lines
from mailismus.queue.sums import LiveLines

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
