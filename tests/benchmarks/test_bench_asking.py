"""A command is held up in every second window, and what is delivered beside it is compared with that."""

from __future__ import annotations

import subprocess
import time

import pytest

from benchmarks.stage import asking
from benchmarks.stage.asking import Windows


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[bytes]:
    """A command that goes on until it is ended."""
    monkeypatch.setattr(asking, "SETTLE_S", 0.02)
    return subprocess.Popen(["sleep", "60"])


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def test_deliveries_that_a_command_stops_are_seen(command: subprocess.Popen[bytes]) -> None:
    delivered, last_s = 0.0, time.monotonic()

    def count() -> int:
        """A thousand a second, half as many while the command goes on."""
        nonlocal delivered, last_s
        now_s = time.monotonic()
        delivered += (now_s - last_s) * (1000 if _state(command.pid) == "T" else 500)
        last_s = now_s
        return int(delivered)

    windows = Windows(count, 0.2)
    windows.follow(command.pid)
    time.sleep(1.5)
    held_s = windows.end()
    try:
        assert 0.2 < held_s < 1.2
        assert windows.share(7.0) == pytest.approx(0.5, abs=0.1)
        assert _state(command.pid) != "T"
    finally:
        command.kill()
        command.wait()


def test_a_command_that_ends_soon_is_compared_with_what_was_before(command: subprocess.Popen[bytes]) -> None:
    windows = Windows(lambda: int(100 * time.monotonic()), 30.0)
    windows.follow(command.pid)
    time.sleep(0.5)
    assert windows.end() == 0.0
    assert windows.share(200.0) == pytest.approx(0.5, abs=0.05)
    command.kill()
    command.wait()
