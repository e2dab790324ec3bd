"""Metrics: what can be asked of the running program, as tables of names and readings (pure).

Each package has a table of its own (`metrics.py`), of what its objects count; a `Reader` is such a table and the object that
it reads. Whoever counts adds to a plain number; all else happens when somebody asks.

*Rules*: names begin with `mailismus_`, are in base units and end with them, counters with `_total`. The values of labels are
words of ours or of the configuration, never a peer's or a client's: their number is bounded.

*Not here*: how a page of them looks (`observe.metrics_page`), who may read it (`observe.metrics_endpoint`).
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import attrs


class MetricType(enum.Enum):
    """How a metric behaves, in the words of Prometheus."""

    COUNTER = "counter"
    """Only grows, from 0 at the start of the program."""
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Distribution:
    """How often something was so large: numbers by bounds, and their sum.

    May be noted in one thread while it is read in another: what is read may then lack a part of the newest note.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds`: ascending; a value belongs to the first that is not below it, or behind them all."""
        self.bounds = tuple(map(float, bounds))
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        """The sum of all values."""

    def note(self, value: float, times: int = 1) -> None:
        """So large, so many times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times


Number = int | float
Reading = Number | Mapping[tuple[str, ...], Number] | Distribution | None
"""A number, one for each combination of label values, or a distribution. None: not known, nothing is shown."""

T = TypeVar("T")


@attrs.frozen
class Metric(Generic[T]):
    """One metric, read of a `T`."""

    name: str
    kind: MetricType
    sentence: str
    read: Callable[[T], Reading]
    labels: tuple[str, ...] = ()


def counter(name: str, sentence: str, read: Callable[[T], Reading], *labels: str) -> Metric[T]:
    """What only grows."""
    return Metric(name, MetricType.COUNTER, sentence, read, labels)


def gauge(name: str, sentence: str, read: Callable[[T], Reading], *labels: str) -> Metric[T]:
    """What goes up and down."""
    return Metric(name, MetricType.GAUGE, sentence, read, labels)


def histogram(name: str, sentence: str, read: Callable[[T], Distribution]) -> Metric[T]:
    """A distribution."""
    return Metric(name, MetricType.HISTOGRAM, sentence, read)


@attrs.frozen
class Reader:
    """A metric and what reads it now."""

    metric: Metric[object]
    read: Callable[[], Reading]


def meter(table: Iterable[Metric[T]], of: T) -> list[Reader]:
    """A table, read of this object."""
    return [_reader(metric, of) for metric in table]


def _reader(metric: Metric[T], of: T) -> Reader:
    return Reader(metric, lambda: metric.read(of))  # type: ignore[arg-type]  # only its description is used from here on


def describe(title: str, table: Iterable[Metric[T]]) -> str:
    """The table for people, in Markdown."""
    rows = [
        f"| `{metric.name}`{''.join(f' `{label}`' for label in metric.labels)} | {metric.kind.value} | {metric.sentence} |\n"
        for metric in table
    ]
    return f"## {title}\n\n| name, labels | type | |\n|---|---|---|\n" + "".join(rows)
