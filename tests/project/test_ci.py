"""`.ci/run`: it runs everything, or nothing at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.project.runners import ROOT


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script in an environment where nothing that it calls does anything but leave a trace."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("python3", "mktemp", "apt-get", "grep", "rm", "cd"):
        (tools / name).write_text(f"#!/bin/sh\n: > {tmp_path}/{name}.was-called\nexit 1\n")
        (tools / name).chmod(0o755)
    return subprocess.run(
        [str(ROOT / ".ci" / "run"), *arguments],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHON": str(tools / "python3")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("argument", ["--help", "-h"])
def test_help_is_a_short_text_and_nothing_is_run(argument: str, tmp_path: Path) -> None:
    done = run(tmp_path, argument)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: .ci/run [--help]\n")
    assert done.stdout.count("\n") < 12
    assert not list(tmp_path.glob("*.was-called"))


@pytest.mark.parametrize("arguments", [("--nonsense",), ("tests/queue",), ("two words\nand two lines",), ("",), ("-n", "4")])
def test_unknown_arguments_are_refused_in_one_line_and_nothing_is_run(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith(".ci/run: unknown argument: ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.was-called"))
