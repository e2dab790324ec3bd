"""The overview of a whole server: which metrics are in it."""

from __future__ import annotations

from mailismus.observe.metrics import Distribution, Metric, counter, gauge, histogram, meter
from mailismus.observe.overview import FIGURES, Spread
from mailismus.start.overview import OverviewMaker
from tests.deliver.harness import Bench
from tests.observe.metrics_tables import METRICS

BARRIERS = Distribution((0.1, 1.0))


def fail(of: object) -> int:
    raise RuntimeError("broken")


READINGS: tuple[Metric[None], ...] = (
    gauge("mailismus_queue_entries", "x", lambda _: {("incoming",): 3, ("deferred",): 4}, "area"),
    counter("mailismus_submit_refused_total", "x", lambda _: {("smtp", "RCPT", "550"): 2}, "listener", "command", "code"),
    gauge("mailismus_deliver_connections", "x", lambda _: 7),
    gauge("mailismus_deliver_held_entries", "x", fail),
    gauge("mailismus_disk_free_bytes", "x", lambda _: None, "of"),
    gauge("mailismus_not_shown", "x", lambda _: 1),
    histogram("mailismus_journal_barrier_seconds", "x", lambda _: BARRIERS),
)


def test_the_figures_are_those_of_the_list_that_can_be_read() -> None:
    BARRIERS.note(0.5, 3)
    bench = Bench()
    make = OverviewMaker(meter(READINGS, None), bench.task, "mx.example", "1.2", lambda: 5.0, lambda: 6.0, lambda: 7.0)
    found = make()
    assert found.figures == {
        "mailismus_queue_entries": {"incoming": 3, "deferred": 4},
        "mailismus_submit_refused_total": {"smtp RCPT 550": 2},
        "mailismus_deliver_connections": 7,
        "mailismus_journal_barrier_seconds": Spread((0.1, 1.0), (0, 3, 0), 1.5),
    }
    assert (found.now, found.monotonic, found.cpu_s, found.version, found.name) == (5.0, 6.0, 7.0, "1.2", "mx.example")
    assert found.known == ()


def test_what_is_known_of_a_domain_is_told_when_it_is_asked_for() -> None:
    make = OverviewMaker((), Bench().task, "mx.example", "1.2", lambda: 5.0, lambda: 6.0)
    assert any("b.example" in line for line in make(b"b.example").known)


def test_every_figure_is_a_metric_of_a_server() -> None:
    assert set(FIGURES) <= {metric.name for metric in METRICS}
