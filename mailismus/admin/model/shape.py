"""The shape of a queue (pure): how many entries wait for each domain, host or sender's domain, by the age of their message.

*Rules*: an entry counts in the first column whose age is not below its own; the last column has the older ones. Names are
bounded: beyond `MAX_NAMES` the smallest are dropped, and their entries are counted together as `others`; sums stay exact.
Only printable characters of a name reach a terminal, and JSON is ASCII.

Source: Postfix's qshape(1), whose columns are minutes.
"""

from __future__ import annotations

import bisect
import enum
import heapq
import json
from collections.abc import Iterator, Sequence

import attrs

from mailismus.mail.address import domain_of
from mailismus.observe.text import shown
from mailismus.queue.interface import Message

AGES = (
    *(("5m", 300.0), ("15m", 900.0), ("30m", 1800.0), ("1h", 3600.0), ("2h", 7200.0), ("4h", 14400.0), ("8h", 28800.0)),
    *(("1d", 86400.0), ("2d", 172800.0)),
)
"""The columns but the last: name, and age in seconds."""

OLDER = "more"
"""The last column."""

LABELS = (*(label for label, _ in AGES), OLDER)
MAX_NAMES = 10_000
NOTHING = b"(none)"
"""The name of entries without one: no host was asked yet, or the sender is the null reverse-path."""

_LIMITS = [age_s for _, age_s in AGES]
_NOBODY = frozenset({b"-", b"", b"none"})


class By(enum.Enum):
    """Meaning of the rows."""

    DOMAIN = "domain"
    """The recipient's domain."""
    HOST = "host"
    """The host that gave the last reply: the next hop's host as it was met."""
    SENDER = "sender"
    """The sender's domain."""


@attrs.frozen
class Row:
    """One name and the counts of its entries, one for each of `LABELS`."""

    name: bytes
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of all its entries."""
        return sum(self.counts)


@attrs.frozen
class Shape:
    """A whole table. `rows`: most entries first. `others`: counts of names that are not in `rows`."""

    by: By
    rows: tuple[Row, ...]
    others: tuple[int, ...]

    @property
    def totals(self) -> tuple[int, ...]:
        """Sums of the columns."""
        return tuple(map(sum, zip(self.others, *(row.counts for row in self.rows), strict=True)))

    def first(self, limit: int | None) -> Shape:
        """Return the table with at most `limit` rows; further rows count as others."""
        if limit is None or limit >= len(self.rows):
            return self
        counts = zip(self.others, *(row.counts for row in self.rows[limit:]), strict=True)
        return Shape(self.by, self.rows[:limit], tuple(map(sum, counts)))


class ShapeCount:
    """Counts a queue's shape as messages come. `now`: UTC seconds; ages count from it."""

    def __init__(self, by: By, now: float, max_names: int = MAX_NAMES) -> None:
        self._by = by
        self._now = now
        self._max_names = max_names
        self._counts: dict[bytes, list[int]] = {}
        self._others = [0] * len(LABELS)

    def add(self, message: Message) -> None:
        """Count the entries of a message that were found together."""
        column = bisect.bisect_left(_LIMITS, self._now - message.received_at)
        sender = domain_of(message.sender) if self._by is By.SENDER else b""
        for entry in message.entries:
            if self._by is By.DOMAIN:
                name = domain_of(entry.final_recipient)
            elif self._by is By.HOST:
                name = b"" if entry.host in _NOBODY else entry.host
            else:
                name = sender
            counts = self._counts.get(name)
            if counts is None:
                counts = self._counts[name] = [0] * len(LABELS)
                if len(self._counts) > 2 * self._max_names:
                    self._counts[name][column] += 1
                    self._shrink()
                    continue
            counts[column] += 1

    def shape(self) -> Shape:
        """Return the table so far."""
        if len(self._counts) > self._max_names:
            self._shrink()
        rows = [Row(name or NOTHING, tuple(counts)) for name, counts in self._counts.items()]
        rows.sort(key=lambda row: (-row.total, row.name))
        return Shape(self._by, tuple(rows), tuple(self._others))

    def _shrink(self) -> None:
        """Drop half of the names, those with the fewest entries."""
        kept = heapq.nlargest(self._max_names, self._counts, key=lambda name: sum(self._counts[name]))
        counts = {name: self._counts[name] for name in kept}
        for name, gone in self._counts.items():
            if name not in counts:
                self._others = [one + other for one, other in zip(self._others, gone, strict=True)]
        self._counts = counts


def shape_lines(shape: Shape) -> Iterator[str]:
    """Return the table as text: columns as wide as their numbers, then the names in full."""
    totals = shape.totals
    lines: list[tuple[str, Sequence[int]]] = [("TOTAL", totals)]
    lines += [(shown(row.name), row.counts) for row in shape.rows]
    if any(shape.others):
        lines.append(("(all others)", shape.others))
    widths = [max(len(label), len(str(total))) + 1 for label, total in zip(LABELS, totals, strict=True)]
    first = max(5, len(str(sum(totals))))
    yield _line("T".rjust(first), widths, LABELS, shape.by.value)
    for name, counts in lines:
        yield _line(str(sum(counts)).rjust(first), widths, list(map(str, counts)), name)


def _line(first: str, widths: Sequence[int], cells: Sequence[str], name: str) -> str:
    return first + "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + "  " + name


def shape_json(shape: Shape) -> Iterator[str]:
    """Return the table as JSON objects, one a line without its end: first the totals, whose name is null."""
    yield _object(shape.by, None, shape.totals)
    for row in shape.rows:
        yield _object(shape.by, row.name.decode("utf-8", "backslashreplace"), row.counts)
    if any(shape.others):
        yield _object(shape.by, "(all others)", shape.others)


def _object(by: By, name: str | None, counts: Sequence[int]) -> str:
    return json.dumps({by.value: name, "entries": sum(counts), "ages": dict(zip(LABELS, counts, strict=True))})
