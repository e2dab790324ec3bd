"""Metrics: tables of the values that the running program offers (pure).

Each package has a table (`metrics.py`) of its objects' counts; a `Reader` is an entry of a table with the object that it
reads. Counting code only adds to a plain number; all other work happens on a request.

*Rules*: names begin with `mailismus_`, use base units and end with them; counters end with `_total`. Label values are our
own words or those of the configuration, never a peer's or a client's: their number is bounded.

*Not here*: the text form (`observe.metrics_page`), access (`observe.metrics_endpoint`).
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import attrs


class MetricType(enum.Enum):
    """The behaviour of a metric, in the terms of Prometheus."""

    COUNTER = "counter"
    """Only grows, from 0 at the start of the program."""
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Distribution:
    """A histogram: counts by upper bounds, and the sum of the values.

    One thread may note values while another reads: the reader may then miss a part of the newest note.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds`: ascending. A value is counted at the first bound that is not below it, or after the last."""
        self.bounds = tuple(map(float, bounds))
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        """The sum of all values."""

    def note(self, value: float, times: int = 1) -> None:
        """Add a value, this many times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times


Number = int | float
Reading = Number | Mapping[tuple[str, ...], Number] | Distribution | None
"""A number, a number for each combination of label values, or a distribution. None: unknown, nothing is shown."""

T = TypeVar("T")


@attrs.frozen
class Metric(Generic[T]):
    """One metric, and how to read it from a `T`."""

    name: str
    kind: MetricType
    sentence: str
    read: Callable[[T], Reading]
    labels: tuple[str, ...] = ()


def counter(name: str, sentence: str, read: Callable[[T], Reading], *labels: str) -> Metric[T]:
    """A metric that only grows."""
    return Metric(name, MetricType.COUNTER, sentence, read, labels)


def gauge(name: str, sentence: str, read: Callable[[T], Reading], *labels: str) -> Metric[T]:
    """A metric that goes up and down."""
    return Metric(name, MetricType.GAUGE, sentence, read, labels)


def histogram(name: str, sentence: str, read: Callable[[T], Distribution]) -> Metric[T]:
    """A metric that is a distribution."""
    return Metric(name, MetricType.HISTOGRAM, sentence, read)


@attrs.frozen
class Reader:
    """A metric bound to the object that it reads."""

    metric: Metric[object]
    read: Callable[[], Reading]


def meter(table: Iterable[Metric[T]], of: T) -> list[Reader]:
    """The readers of a table for this object."""
    return [_reader(metric, of) for metric in table]


def _reader(metric: Metric[T], of: T) -> Reader:
    return Reader(metric, lambda: metric.read(of))  # type: ignore[arg-type]  # only its description is used from here on


def describe(title: str, table: Iterable[Metric[T]]) -> str:
    """The table in Markdown, for the documentation."""
    rows = [
        f"| `{metric.name}`{''.join(f' `{label}`' for label in metric.labels)} | {metric.kind.value} | {metric.sentence} |\n"
        for metric in table
    ]
    return f"## {title}\n\n| name, labels | type | |\n|---|---|---|\n" + "".join(rows)
