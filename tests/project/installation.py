"""A fresh environment with the project in it, for tests: it sees the dependencies of this one, so no registry is asked."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sysconfig
import venv
from pathlib import Path

from tests.project.runners import ROOT, await_text, clean_environment
from tests.project.test_starting import MINIMAL

PARTS = (
    *("mailismus", "twisted", "config", "pyproject.toml", "setup.cfg", "MANIFEST.in"),
    *("README.rst", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
)


def copy_sources(directory: Path) -> Path:
    """Copy what the packages are built from to `directory`/source; return that path. A build writes beside its sources."""
    source = directory / "source"
    source.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__", "dropin.cache"))
        else:
            shutil.copy(ROOT / part, source)
    return source


class Installation:
    """A fresh environment in `directory`, with the project installed from `origin`: a tree, a wheel or an sdist.

    `options` are for `pip install`. Commands run in `work`, where a minimal `mailismus.xml` lies.
    """

    def __init__(self, directory: Path, origin: Path, *options: str) -> None:
        venv.create(directory / "venv", with_pip=False, symlinks=True)
        self.bin = directory / "venv" / "bin"
        self.packages = next((directory / "venv" / "lib").iterdir()) / "site-packages"
        (self.packages / "tests-environment.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        self.work = directory / "work"
        self.work.mkdir()
        (self.work / "mailismus.xml").write_text(MINIMAL)
        offline = ("--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed")
        self.run("python", "-m", "pip", "install", "-q", *offline, *options, str(origin))
        # Scripts of what the tests' environment has; the package's own `mailismus` is made by pip.
        for script, target in (("twistd", "twisted.scripts.twistd"), ("twist", "twisted.application.twist._twist")):
            call = "run()" if script == "twistd" else "Twist.main()"
            name = "run" if script == "twistd" else "Twist"
            (self.bin / script).write_text(f"#!{self.bin}/python\nfrom {target} import {name}\n{call}\n")
            (self.bin / script).chmod(0o755)

    def run(self, name: str, *arguments: str) -> str:
        """Return what a command of the environment prints; it must succeed."""
        done = subprocess.run(
            [str(self.bin / name), *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=self.work,
            env=clean_environment(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def serve(self, *command: str) -> str:
        """Return what a server in the foreground has logged once it was ready and has stopped."""
        output = self.work / "output"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                command, cwd=self.work, env=clean_environment(), stdout=stream, stderr=subprocess.STDOUT
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
