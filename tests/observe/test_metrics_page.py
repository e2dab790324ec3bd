"""The page, read by the library's own parser."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse
from twisted.internet.task import Clock

from mailismus.observe.metrics import Distribution, Metric, Reading, counter, gauge, histogram, meter
from mailismus.observe.metrics_page import FRESH_S, MetricsPage
from tests.fakes.events import Events


class Thing:
    """Something that is read. `one` and `many` may be told to fail."""

    def __init__(self) -> None:
        self.one: Reading = 7
        self.times = Distribution((0.5, 1))

    def fail(self) -> Reading:
        raise RuntimeError("a bug")


TABLE: tuple[Metric[Thing], ...] = (
    counter("mailismus_one_total", "One \\ thing.", lambda t: t.one),
    counter("mailismus_bad_total", "Never.", lambda t: t.fail()),
    gauge("mailismus_many", "Many.", lambda t: {("a", 'x"\n'): 1, ("b", "y"): 2.5}, "left", "right"),
    histogram("mailismus_times_seconds", "Times.", lambda t: t.times),
)


def samples(page: bytes) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in parse(page.decode())
        for sample in family.samples
    }


def test_every_kind_is_read_back_and_a_bug_hides_nothing_else() -> None:
    thing, clock = Thing(), Clock()
    for value in (0.1, 0.5, 0.7, 3):
        thing.times.note(value)
    page = MetricsPage(meter(TABLE, thing), clock.seconds)
    with Events() as events:
        found = samples(page())
        clock.advance(FRESH_S)
        page()
    assert {name: value for name, value in found.items() if name[0].startswith("mailismus_")} == {
        ("mailismus_one_total", ()): 7,
        ("mailismus_many", ("a", 'x"\n')): 1,
        ("mailismus_many", ("b", "y")): 2.5,
        ("mailismus_times_seconds_bucket", ("0.5",)): 2,
        ("mailismus_times_seconds_bucket", ("1.0",)): 3,
        ("mailismus_times_seconds_bucket", ("+Inf",)): 4,
        ("mailismus_times_seconds_count", ()): 4,
        ("mailismus_times_seconds_sum", ()): pytest.approx(4.3),
    }
    assert ("process_resident_memory_bytes", ()) in found
    assert [event.get("metric") for event in events] == ["mailismus_bad_total"]


def test_families_are_of_the_kind_that_the_table_says() -> None:
    page = MetricsPage(meter(TABLE, Thing()), Clock().seconds)
    kinds = {family.name: family.type for family in parse(page().decode())}
    assert kinds["mailismus_one"] == "counter"
    assert (kinds["mailismus_many"], kinds["mailismus_times_seconds"]) == ("gauge", "histogram")


def test_what_is_not_known_is_not_there() -> None:
    thing = Thing()
    thing.one = None
    assert b"mailismus_one" not in MetricsPage(meter(TABLE, thing), Clock().seconds)()


def test_a_page_is_used_again_for_a_moment() -> None:
    thing, clock = Thing(), Clock()
    page = MetricsPage(meter(TABLE, thing), clock.seconds)
    first = page()
    thing.one = 8
    assert page() is first
    clock.advance(FRESH_S)
    assert samples(page())["mailismus_one_total", ()] == 8
