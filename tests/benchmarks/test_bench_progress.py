"""A benchmark shows at a terminal that it goes on, and in a pipe nothing but what it says."""

from __future__ import annotations

import io
import time

import pytest

from benchmarks import forecast
from benchmarks.forecast import Fate, Run
from benchmarks.stage.progress import say, shown
from mailismus.admin.commands import progress


class Terminal(io.StringIO):
    """Where somebody looks."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of progress come at once."""
    monkeypatch.setattr(progress, "INTERVAL_S", 0.001)


def run(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO) -> str:
    """Tell what a benchmark writes that says one thing."""
    monkeypatch.setattr("sys.stderr", stderr)
    with shown():
        wait_for_a_line(stderr)
        say("one is done")
    return stderr.getvalue()


def wait_for_a_line(stderr: io.StringIO) -> None:
    """At a terminal, until one of progress is there."""
    deadline_s = time.monotonic() + 5
    while stderr.isatty() and not stderr.getvalue() and time.monotonic() < deadline_s:
        time.sleep(0.001)


def test_a_terminal_shows_how_long_it_lasts_and_each_line_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run(monkeypatch, Terminal())
    assert text.startswith("\rmeasuring: 0 s")
    assert "\rone is done\n" in text
    assert text.endswith(("\r", "one is done\n"))


def test_a_pipe_has_what_is_said_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, io.StringIO()) == "one is done\n"


@pytest.mark.parametrize("stderr", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_the_forecast_shows_each_run_and_clears_it_before_its_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stderr: io.StringIO
) -> None:
    def run(seed: int, *_: object) -> Run:
        wait_for_a_line(stderr)
        fate = Fate(1, 0, 0, 2.0, 3.0)
        return Run(seed, 1, 1, 0.5, {"all": fate}, {"all": fate})

    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(forecast, "run", run)
    assert forecast.main(["--seed", "7"]) == 0
    told, figures = stderr.getvalue(), capsys.readouterr().out
    assert figures.splitlines()[-1].startswith("| 7 | all | 1 / 1 | 0 / 0 |")
    assert "\rrun 7: 0 s" in told or not stderr.isatty()
    last = "run 7: 1 entries, the command took 0.5 s\n"
    assert told.endswith(f"\r{last}") if stderr.isatty() else told == last
