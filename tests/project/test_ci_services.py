"""`.ci/services`: where nothing can be had it says so, and CI goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.runners import ROOT

NEEDED = ("bash", "cat", "dirname", "env", "id", "ls", "mkdir", "rm", "sleep", "tail", "timeout", "tee", "chmod")


@pytest.fixture
def poor(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without any service, whose user may not install packages, and whose Maven fails."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    for name, text in {"id": "echo 1000", "sudo": "exit 1", "mvn": "echo no network; exit 1"}.items():
        (tools / name).unlink(missing_ok=True)
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    return {
        "PATH": str(tools),
        "HOME": str(tmp_path / "home"),
        "MAILISMUS_SERVICES": str(tmp_path / "services"),
        "SERVICES_SECONDS": "30",
    }


def run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """With stdin closed."""
    return subprocess.run(
        ["bash", "-c", 'exec <&-; exec "$0" "$@"', str(ROOT / ".ci" / "services"), *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_cannot_be_had_is_said_and_ci_goes_on(poor: dict[str, str], tmp_path: Path) -> None:
    fetched = run(poor, "fetch", sys.executable)
    assert fetched.returncode == 0
    assert "services: installing " in fetched.stdout
    assert "openjdk" in fetched.stdout.partition("\n")[0]
    assert "could be installed" in fetched.stdout
    assert "no network" in fetched.stderr
    assert "services: Cassandra's jars could not be fetched" in fetched.stdout
    assert not list((tmp_path / "home" / ".cache" / "mailismus").iterdir())
    up = run(poor, "up", sys.executable, str(os.getpid()))
    assert up.returncode == 0
    assert up.stdout.endswith("services: not up\n")
    assert [line.partition(":")[0] for line in up.stdout.splitlines()[:-1]] != []
    assert run(poor, "down", sys.executable).returncode == 0
    assert not (tmp_path / "services").exists()
