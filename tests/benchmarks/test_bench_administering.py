"""A command of an administrator in a trial: its output, its failure, and how long it may take."""

from __future__ import annotations

import os
import subprocess
from typing import cast

import pytest

from benchmarks.stage import trial
from benchmarks.stage.servers import Ours
from benchmarks.stage.trial import administer
from tests.support.processes import TrialError


class Shell:
    """Stands for the server: its commands are those of a shell."""

    def command(self, *arguments: str) -> list[str]:
        return ["/bin/sh", "-c", *arguments]

    def environment(self) -> dict[str, str]:
        return dict(os.environ)


SERVER = cast(Ours, Shell())


def test_what_it_writes_is_given_and_a_failure_is_told_with_its_reason() -> None:
    assert administer(SERVER, "echo done") == b"done\n"
    with pytest.raises(TrialError, match="exit code 75: no place"):
        administer(SERVER, "echo no place >&2; exit 75")


def test_a_command_without_an_answer_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "STEP_S", 0.01)
    with pytest.raises(TrialError, match="no answer within 0 s"):
        administer(SERVER, "exec sleep 60", timeout_s=0.03)


def test_a_long_stop_of_the_trial_itself_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    communicate, steps = subprocess.Popen.communicate, 0

    def wait(self: subprocess.Popen[bytes], timeout: float) -> object:
        nonlocal steps
        steps += 1
        if steps < 3:  # as behind a stop: the time is over, whatever has come
            raise subprocess.TimeoutExpired("command", timeout)
        return communicate(self, timeout=timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", wait)
    assert administer(SERVER, "echo done", timeout_s=3.0) == b"done\n"
