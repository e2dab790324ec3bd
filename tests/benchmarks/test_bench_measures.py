"""Counting: barriers in a trace, the sink's counter, the ready line, processes, ratios."""

from __future__ import annotations

import pytest

from benchmarks.measure import barriers
from benchmarks.measure.costs import Cpu, Machine, descendants
from benchmarks.results.report import Run, Spread, figures, number, ratios
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.load import last_count
from benchmarks.stage.servers import ready_port

TRACE = """\
100 1000.000001 openat(AT_FDCWD, "/q/a", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3
100 1000.100000 fdatasync(3)            = 0
101 1000.200000 fdatasync(3 <unfinished ...>
100 1000.200100 syncfs(4)               = 0
101 1000.200500 <... fdatasync resumed>) = 0
100 1000.300000 pwritev2(3, [{iov_base="x", iov_len=1}], 1, 0, RWF_DSYNC) = 1
100 1000.300000 pwritev2(3, [{iov_base="x", iov_len=1}], 1, 0, 0) = 1
100 1000.400000 msync(0x7f0000000000, 4096, MS_ASYNC) = 0
100 1000.400000 msync(0x7f0000000000, 4096, MS_SYNC) = 0
100 1002.000000 fsync(3)                = 0
100 +++ exited with 0 +++
"""


def test_barriers_of_the_window_are_counted_once_each() -> None:
    found = barriers.count(TRACE.splitlines(), 1000.0, 1001.0)
    assert found.by_call == {"fdatasync": 2, "syncfs": 1, "pwritev2": 1, "msync": 1}
    assert found.count == 5
    assert found.dsync_opens == 0


def test_a_file_opened_for_synchronous_writes_is_told() -> None:
    line = '100 999.0 openat(AT_FDCWD, "/q/a", O_WRONLY|O_DSYNC) = 3'
    assert barriers.count([line], 1000.0, 1001.0).dsync_opens == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("sess=1 quit=0 mesg=0\rsess=1 quit=0 mesg=1\r", 1),
        ("sess=9 quit=9 mesg=12\rsess=9 quit=9 mes", 12),
        ("mesg=4", 0),
    ],
)
def test_the_sinks_last_whole_counter_is_read(text: str, expected: int) -> None:
    assert last_count(text) == expected


def test_the_ready_line_tells_the_port_and_the_last_one_counts() -> None:
    assert ready_port(b"2026-01-01 [-] starting\n") == 0
    assert ready_port(b"x ready: ADMIN=1 SMTP=127.0.0.1:1111\ny ready: SMTP=127.0.0.1:2222\n") == 2222


def test_descendants_are_found_through_the_generations() -> None:
    assert descendants(2, {1: 0, 2: 1, 3: 2, 4: 3, 5: 1}) == {2, 3, 4}
    assert descendants(9, {1: 0}) == set()


def test_the_share_of_others_is_what_is_busy_or_stolen_without_ours() -> None:
    before, now = Machine(0.0, 10.0, 1.0), Machine(10.0, 20.0, 1.0)
    assert now.others_share(before, 10.0) == 0
    assert now.others_share(before, 20.0) == 0
    assert now.others_share(before, 0.0) > 0
    assert Cpu(2, 3).minus(Cpu(1, 1)) == Cpu(1, 2)


def _run(server: str, rate: float, cpu_ms: float) -> Run:
    return Run(server, "W1", 100, rate * 2, rate, cpu_ms, 0.5, 26_000_000, 1, 0.01)


def test_ratios_are_of_pairs_with_least_and_greatest() -> None:
    runs = [_run("ours", 50, 0.2), _run("postfix", 10, 2), _run("ours", 60, 0.1), _run("postfix", 10, 2)]
    assert "| W1 | 5.50 (5-6) | 5.50 (5-6) | 15 (10-20) |" in ratios(runs, "ours", "postfix")
    assert ratios(runs, "ours", "previous") == ""
    assert "| W1 ours | 100 | 110 (100-120) | 55 (50-60) |" in figures(runs, {("W1", "ours"): 0.125})
    assert "| 0.12 |" in figures(runs, {("W1", "ours"): 0.125})


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.0523, "0.052"), (0.256, "0.26"), (12.34, "12.3"), (4321.5, "4322")]
)
def test_numbers_have_about_three_figures(value: float, text: str) -> None:
    assert number(value) == text


def test_spread_is_median_with_extremes() -> None:
    assert Spread.of([3, 1, 2]) == Spread(2, 1, 3)


def test_workloads_ask_the_generator_for_what_they_say() -> None:
    assert "-d" in WORKLOADS["W2"].source_arguments(10)
    assert "-d" not in WORKLOADS["W1"].source_arguments(10)
    argv = WORKLOADS["W3"].source_arguments(1000)
    assert argv[argv.index("-r") + 1] == "50"
    assert argv[argv.index("-s") + 1] == "50"
    assert WORKLOADS["W4"].size_bytes == 102400
