"""What two overviews tell."""

from __future__ import annotations

import math

import attrs
import pytest

from mailismus.observe.figures import compare, told_spaces
from mailismus.observe.history import WINDOW_S, History
from mailismus.observe.overview import Figure, Overview, Spread
from mailismus.top.plot import plot
from tests.top.samples import busy, figures, hop, idle


def test_rates_are_differences_by_the_time_of_the_server() -> None:
    picture = compare(busy(10), busy(14))
    assert picture.traffic.messages == 10
    assert picture.traffic.recipients == 25
    assert picture.traffic.refused == 1
    assert picture.traffic.delivered == 8
    assert picture.traffic.deferred == 1
    assert picture.traffic.failed == 0
    assert picture.cpu == pytest.approx(0.12)
    rates = {row.figures.name: (row.delivered, row.deferred, row.failed) for row in picture.rows}
    assert rates["well.test"] == (7, 0, 0)
    assert rates["dead.test"] == (0, 1, 0)


def test_directories_on_one_file_system_are_told_of_once() -> None:
    free = {"queue": 48.0e9, "spool": 48.1e9, "maildirs": 9e9, "other": 48e9}
    size = {"queue": 120e9, "spool": 120e9, "maildirs": 120e9, "other": 500e9}
    told = {**figures(1), "mailismus_disk_free_bytes": free, "mailismus_disk_size_bytes": size}
    spaces = compare(None, attrs.evolve(busy(), figures=told)).spaces
    assert [one.of for one in spaces] == ["queue, spool", "maildirs", "other"]
    assert told_spaces(spaces)[0] == " (queue, spool)"
    assert told_spaces(spaces[:1]) == [""]


def test_the_first_overview_has_no_rates() -> None:
    picture = compare(None, busy())
    assert picture.traffic.messages is None
    assert picture.cpu is None
    assert all(row.delivered is None for row in picture.rows)
    assert picture.areas == {"incoming": 48, "deferred": 4310, "bounces": 2}


@pytest.mark.parametrize(
    "again",
    [
        attrs.evolve(busy(20), monotonic=3.0),
        attrs.evolve(busy(20), cpu_s=0.1),
        attrs.evolve(busy(20), figures=figures(0)),
    ],
)
def test_another_run_of_the_server_gives_no_rates_below_zero(again: Overview) -> None:
    assert compare(busy(10), again).traffic.messages is None


def test_a_next_hop_that_was_not_there_before_has_no_rate() -> None:
    new = attrs.evolve(busy(2), next_hops=(hop("new.test", delivered=9),))
    assert compare(busy(1), new).rows[0].delivered is None


def test_times_of_barriers_are_those_between_the_two() -> None:
    barriers = compare(busy(10), busy(14)).barriers
    assert barriers is not None
    assert barriers.batches == 12
    assert barriers.mean_s == pytest.approx(0.004)
    assert barriers.slow_s == 0.1


def test_barriers_beyond_the_last_bound_are_told_as_unbounded() -> None:
    slow: dict[str, Figure] = {
        "mailismus_log_batches_total": 5,
        "mailismus_log_barrier_seconds": Spread((0.1,), (0, 5), 10.0),
    }
    none: dict[str, Figure] = {
        "mailismus_log_batches_total": 0,
        "mailismus_log_barrier_seconds": Spread((0.1,), (0, 0), 0.0),
    }
    barriers = compare(attrs.evolve(idle(1), figures=none), attrs.evolve(idle(2), figures=slow)).barriers
    assert barriers is not None
    assert barriers.mean_s == 2.0
    assert barriers.slow_s == math.inf


def test_a_server_without_a_disk_has_no_barriers() -> None:
    assert compare(idle(1), idle(2)).barriers is None


def test_what_refuses_mail_is_told() -> None:
    full = attrs.evolve(busy(), figures={"mailismus_queue_refusing": {"disk": 1, "memory": 0}})
    assert compare(None, full).refusing == ["disk"]


def test_a_rate_is_made_over_some_seconds() -> None:
    history = History()
    for step in range(1, 30):
        picture = history.add(busy(step))
    late = attrs.evolve(busy(30), figures=figures(29))
    assert history.add(late).traffic.messages == pytest.approx(10 * (WINDOW_S - 1) / WINDOW_S)
    assert picture.traffic.messages == 10
    assert history.rates[-1].came == 0


def test_history_begins_anew_with_another_run() -> None:
    history = History()
    history.add(busy(50))
    assert history.add(busy(3)).traffic.messages is None
    assert history.add(busy(4)).traffic.messages == 10


@pytest.mark.parametrize(
    ("values", "width", "shown"),
    [([], 4, "    "), ([0, 1, 8], 4, "  ▁█"), ([1, 2, 3], 2, "▅█"), ([0.0, 0.0], 2, "  "), ([5], 0, "")],
)
def test_a_plot_is_as_high_as_its_largest_value(values: list[float], width: int, shown: str) -> None:
    assert plot(values, width) == shown
