"""Metrics: distributions, and the tables of all packages."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mailismus.observe.metrics import Distribution, MetricType, counter, meter
from tests.observe.metrics_tables import MARKER, METRICS, PAGE, write_tables

UNITS = ("_seconds", "_bytes", "_info", "_total", "_timestamp_seconds")


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 5))))
def test_a_value_counts_at_the_first_bound_that_is_not_below_it(notes: list[tuple[float, int]]) -> None:
    distribution = Distribution((1, 2.5, 10))
    for value, times in notes:
        distribution.note(value, times)
    values = [value for value, times in notes for _ in range(times)]
    up_to = [sum(value <= bound for value in values) for bound in (1, 2.5, 10, 20)]
    assert [sum(distribution.counts[: place + 1]) for place in range(4)] == up_to
    assert abs(distribution.total - sum(values)) < 1e-6


def test_a_meter_reads_what_is_there_when_it_is_asked() -> None:
    numbers = [1]
    (reader,) = meter((counter("mailismus_numbers_total", "Numbers.", lambda n: len(n)),), numbers)
    numbers.append(2)
    assert reader.read() == 2


def test_every_name_is_there_once_and_says_kind_and_unit() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    for metric in METRICS:
        assert re.fullmatch(r"mailismus(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") is (metric.kind is MetricType.COUNTER), metric.name
        assert all(re.fullmatch("[a-z]+", label) for label in metric.labels)
        if "bytes" in metric.name or "seconds" in metric.name:
            assert metric.name.removesuffix("_total").endswith(UNITS), metric.name
        assert metric.kind is not MetricType.HISTOGRAM or metric.name.endswith("_seconds")


def test_every_metric_has_a_sentence() -> None:
    for metric in METRICS:
        assert metric.sentence[0].isupper() or metric.sentence[0] == "1", metric.name
        assert metric.sentence.endswith(".")
        assert "|" not in metric.sentence
        assert "\n" not in metric.sentence


def test_the_manual_says_what_the_tables_say() -> None:
    assert PAGE.read_text().partition(MARKER)[2] == "\n" + write_tables(), (
        "write it anew: python -m tests.observe.metrics_tables"
    )
