"""One cell of the table of commits: a load, a choice in the configuration, a file system; what was measured (pure).

Figures are of a window in the middle of the run. A ratio is against the default in the same surroundings, of the same run.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import attrs

from benchmarks.drain import percentile
from benchmarks.measure.disk_calls import Counts
from benchmarks.results.report import number, table

SMALL_BYTES, LARGE_BYTES = 4096, 300_000
DEFAULT = "default"
JOURNAL = "<journal>{}</journal>"


@attrs.frozen
class Choice:
    """Something of the configuration, changed alone."""

    name: str
    journal: str = ""
    """Elements of `<journal>`."""

    @property
    def queue(self) -> str:
        """Elements of `<queue>`."""
        return JOURNAL.format(self.journal) if self.journal else ""


STANDARD = Choice(DEFAULT)
YARDSTICK = Choice("a file for each message", "<largemsgsize>0</largemsgsize><maxage>0</maxage>")
SEGMENTS = tuple(Choice(f"segmentsize {size}", f"<segmentsize>{size}</segmentsize>") for size in ("1Mi", "4Mi", "64Mi"))
LARGE = tuple(Choice(f"largemsgsize {size}", f"<largemsgsize>{size}</largemsgsize>") for size in ("0", "16Ki", "1Mi"))
AGES = tuple(Choice(f"maxage {age}", f"<maxage>{age}</maxage>") for age in ("300ms", "30s"))


@attrs.frozen
class Cell:
    """Where and with what it is measured."""

    file_system: str
    sessions: int
    size_bytes: int
    choice: Choice = STANDARD
    has_writer: bool = False
    """Another heavy writer on the same file system."""
    has_next_hop: bool = True
    """The sink is up; else nobody listens there."""

    @property
    def surroundings(self) -> tuple[str, int, int, bool, bool]:
        """All but the choice."""
        return self.file_system, self.sessions, self.size_bytes, self.has_writer, self.has_next_hop

    @property
    def name(self) -> str:
        """In words."""
        size = "4 KiB" if self.size_bytes == SMALL_BYTES else f"{self.size_bytes // 1000} KB"
        beside = ", beside a heavy writer" if self.has_writer else ""
        hop = "" if self.has_next_hop else ", next hop down"
        return f"{self.file_system}, {size}{beside}{hop}"


@attrs.frozen
class Measured:
    """What one run of a cell has shown."""

    cell: Cell
    seconds: float
    answers_s: tuple[float, ...]
    """How long each 250 took after the final dot."""
    counts: Counts

    @property
    def per_s(self) -> float:
        """250s a second."""
        return len(self.answers_s) / self.seconds

    @property
    def median_ms(self) -> float:
        """Of the 250s."""
        return percentile(self.answers_s, 0.5) * 1e3

    @property
    def p95_ms(self) -> float:
        """Of the 250s."""
        return percentile(self.answers_s, 0.95) * 1e3

    def a_message(self, count: int) -> float:
        """A count by messages."""
        return count / len(self.answers_s) if self.answers_s else float("nan")


def cells(file_system: str, parts: Sequence[str]) -> list[Cell]:
    """What is measured on one file system, of these parts; the default stands first and last in its surroundings."""
    found: list[Cell] = []
    both = (SMALL_BYTES, LARGE_BYTES)

    def compare(choices: Sequence[Choice], cell: Cell) -> None:
        found.extend(attrs.evolve(cell, choice=choice) for choice in (STANDARD, *choices, STANDARD))

    for size in both:
        if "base" in parts:
            found += [Cell(file_system, sessions, size) for sessions in (1, 10, 50, 500)]
        for sessions in (1, 50):
            if "choices" in parts:
                everywhere = (*SEGMENTS, *LARGE, YARDSTICK) if file_system == "ext4" else (LARGE[0], YARDSTICK)
                compare(everywhere, Cell(file_system, sessions, size))
            if "writer" in parts:
                compare((LARGE[0], YARDSTICK), Cell(file_system, sessions, size, has_writer=True))
    if "down" in parts:
        for sessions in (1, 50):
            compare((*AGES, YARDSTICK), Cell(file_system, sessions, SMALL_BYTES, has_next_hop=False))
    return found


def markdown(measured: Sequence[Measured]) -> str:
    """A row a cell; the default that was measured twice is one row, its figures are means."""
    groups: dict[Cell, list[Measured]] = {}
    for one in measured:
        groups.setdefault(one.cell, []).append(one)

    def mean(cell: Cell, what: str) -> float:
        return statistics.mean(float(getattr(one, what)) for one in groups[cell])

    rows = []
    for cell, runs in groups.items():
        standard = attrs.evolve(cell, choice=STANDARD)
        row = [cell.name, str(cell.sessions), cell.choice.name]
        for what in ("per_s", "median_ms", "p95_ms"):
            value = mean(cell, what)
            ratio = "" if cell.choice == STANDARD or standard not in groups else f" ({number(value / mean(standard, what))})"
            row.append(number(value) + ratio)
        row += [number(statistics.mean(one.a_message(one.counts.barriers) for one in runs))]
        row += [number(statistics.mean(one.a_message(one.counts.message_files) for one in runs))]
        rows.append(row)
    header = ["", "sessions", "choice", "messages/s", "median ms", "p95 ms", "barriers/msg", ".msg/msg"]
    return table(header, rows)
