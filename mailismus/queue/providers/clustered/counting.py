"""Counting the live lines of a cluster, a million of them beside deliveries (pure).

*Rules*: of a file in which every line has the form of one, no CRC is looked at: a line that is damaged and has its form
counts until a visit finds it. Any other file is counted line by line, as it is read.

Source: `docs/formats/cluster`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.clustered.cluster import scan_lines
from mailismus.queue.providers.clustered.line import DONE, FORMAT

_NUMBERS = rb"%b ([0-9A-F]{16}) [0-9]+/([0-9]+) [0-9]+ [0-9]+ [0-9]+ ([0-9]+) " % FORMAT
_LIVE_LINE = re.compile(rb"\n[^%b\n]%b" % (DONE, _NUMBERS))
"""From the LF before it on: spool id, recipients of the envelope, content bytes."""
_LONE_LINE = re.compile(rb"\n[^%b\n]%b [0-9A-F]{16} 1/1 [0-9]+ [0-9]+ [0-9]+ ([0-9]+) " % (DONE, FORMAT))
"""The same of a message with one recipient: content bytes."""
_BEGINNING = re.compile(_NUMBERS)
_DONE_LINE = b"\n" + DONE + FORMAT + b" "

_Numbers = tuple[bytes, bytes, bytes]


class LiveLines(NamedTuple):
    """What the live lines of a cluster come to. A message with one recipient has one line; the others may have lines in
    several clusters."""

    entries: int
    lone_messages: int
    lone_bytes: int
    sizes: dict[SpoolId, int]
    """Content sizes of the messages that came with several recipients."""


NO_LINES = LiveLines(0, 0, 0, {})


def count_live(data: bytes, committed: int | None, hidden: Collection[int]) -> LiveLines:
    """Count them. `data`, `committed`: as in `cluster.read_lines`; `hidden`: offsets of lines that are over whatever their
    state bytes say."""
    if committed is not None and committed < len(data):
        data = data[:committed]
    live = data.count(b"\n") - data.count(_DONE_LINE) - 1  # the header
    if data[-1:] != b"\n":
        return _sum(_live_numbers(data, committed, hidden))
    if hidden:
        shown = [(match.start() + 1, match.groups()) for match in _LIVE_LINE.finditer(data)]
        if len(shown) == live:
            return _sum(numbers for offset, numbers in shown if offset not in hidden)
        return _sum(_live_numbers(data, committed, hidden))
    first = _LIVE_LINE.search(data)
    if first is not None and first[2] == b"1":
        lone: list[bytes] = _LONE_LINE.findall(data)
        if len(lone) == live:
            return LiveLines(live, live, sum(map(int, lone)), {})
    found: list[_Numbers] = _LIVE_LINE.findall(data)
    return _sum(found if len(found) == live else _live_numbers(data, committed, hidden))


def _live_numbers(data: bytes, committed: int | None, hidden: Collection[int]) -> Iterator[tuple[bytes, ...]]:
    """Of each line that checks and is live, wherever it lies."""
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
