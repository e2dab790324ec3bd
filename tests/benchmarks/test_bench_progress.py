"""A benchmark shows at a terminal that it goes on, and in a pipe nothing but what it says."""

from __future__ import annotations

import io
import time

import pytest

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
        deadline_s = time.monotonic() + 5
        while stderr.isatty() and not stderr.getvalue() and time.monotonic() < deadline_s:
            time.sleep(0.001)
        say("one is done")
    return stderr.getvalue()


def test_a_terminal_shows_how_long_it_lasts_and_each_line_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run(monkeypatch, Terminal())
    assert text.startswith("\rmeasuring: 0 s")
    assert "\rone is done\n" in text
    assert text.endswith(("\r", "one is done\n"))


def test_a_pipe_has_what_is_said_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, io.StringIO()) == "one is done\n"
