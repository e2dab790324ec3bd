"""Installing: `pip install .` and `pip install -e .` both give the commands, the plugin included.

The project is installed into fresh environments that see what this one has, so no registry is asked.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.project.runners import ROOT, await_text, end_daemon
from tests.project.test_starting import MINIMAL

PARTS = ("mailismus", "twisted", "config", "pyproject.toml", "setup.cfg", "README.rst")


class Installation:
    """A fresh environment with the project in it."""

    def __init__(self, directory: Path, *options: str) -> None:
        source = directory / "source"
        source.mkdir()
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__", "dropin.cache"))
            else:
                shutil.copy(ROOT / part, source)
        venv.create(directory / "venv", with_pip=False, symlinks=True)
        self.bin = directory / "venv" / "bin"
        self.packages = next((directory / "venv" / "lib").iterdir()) / "site-packages"
        (self.packages / "tests-environment.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        self.run(
            "python",
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--ignore-installed",
            *options,
            str(source),
        )
        # Scripts of what the tests' environment has; the package's own `mailismus` is made by pip.
        for script, target in (("twistd", "twisted.scripts.twistd"), ("twist", "twisted.application.twist._twist")):
            call = "run()" if script == "twistd" else "Twist.main()"
            name = "run" if script == "twistd" else "Twist"
            (self.bin / script).write_text(f"#!{self.bin}/python\nfrom {target} import {name}\n{call}\n")
            (self.bin / script).chmod(0o755)
        self.work = directory / "work"
        self.work.mkdir()
        (self.work / "mailismus.xml").write_text(MINIMAL)

    def run(self, name: str, *arguments: str) -> str:
        """What a command of the environment prints; it must succeed."""
        done = subprocess.run(
            [str(self.bin / name), *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=getattr(self, "work", self.bin),
            env=_clean_environment(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def serve(self, *command: str) -> str:
        """What a server in the foreground has logged once it was ready and has stopped."""
        output = self.work / "output"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                command, cwd=self.work, env=_clean_environment(), stdout=stream, stderr=subprocess.STDOUT
            )
        try:
            await_text(output, "ready: SMTP=127.0.0.1:")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return output.read_text()


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP", "VIRTUAL_ENV"))}


@pytest.fixture(scope="module", params=["plain", "editable"])
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    options = ["--editable"] if request.param == "editable" else []
    return Installation(tmp_path_factory.mktemp(request.param), *options)


def test_the_commands_are_there(installation: Installation) -> None:
    assert "mailismus " in installation.run("twistd", "--help")
    assert "mailismus " in installation.run("twist", "--help")
    assert installation.run("mailismus", "--config", "mailismus.xml", "config", "check").endswith("mailismus.xml: ok\n")
    assert installation.run("python", "-m", "mailismus", "--version").startswith("Mailismus 0")


def test_it_serves_in_the_foreground(installation: Installation) -> None:
    for command in (["twistd", "-n", "--pidfile="], ["twist"]):
        log = installation.serve(str(installation.bin / command[0]), *command[1:], "mailismus", "--config", "mailismus.xml")
        assert "Traceback" not in log


def test_it_serves_in_the_background(installation: Installation) -> None:
    installation.run("twistd", "mailismus", "--config", "mailismus.xml")
    pid = int((installation.work / "twistd.pid").read_text())
    try:
        await_text(installation.work / "twistd.log", "ready: SMTP=127.0.0.1:")
    finally:
        end_daemon(pid)


def test_it_serves_where_its_packages_cannot_be_written(installation: Installation) -> None:
    places = [path for path in (installation.packages, installation.bin.parents[1] / "source") if path.exists()]
    caches = [cache for place in places for cache in place.rglob("dropin.cache")]
    for cache in caches:
        cache.unlink()
    directories = [directory for place in places for directory in (place, *place.rglob("*")) if directory.is_dir()]
    for directory in directories:
        directory.chmod(0o555)
    # For root a mode is no obstacle: its capabilities are taken away.
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    try:
        log = installation.serve(
            *powerless, str(installation.bin / "twistd"), "-n", "--pidfile=", "mailismus", "--config", "mailismus.xml"
        )
        assert "plugin cache" not in log
        assert "Traceback" not in log
        assert not [cache for place in places for cache in place.rglob("dropin.cache")]
    finally:
        for directory in directories:
            directory.chmod(0o755)


def test_this_interpreter_is_new_enough() -> None:
    assert sys.version_info >= (3, 11)
