"""Installing: `pip install .` and `pip install -e .` both give the commands, the plugin included.

The project is installed into fresh environments that see what this one has, so no registry is asked.
"""

from __future__ import annotations

import os
import sys

import pytest

from tests.project.installation import Installation, copy_sources
from tests.project.runners import await_text, end_daemon


@pytest.fixture(scope="module", params=["plain", "editable"])
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    directory = tmp_path_factory.mktemp(request.param)
    options = ["--editable"] if request.param == "editable" else []
    return Installation(directory, copy_sources(directory), *options)


def test_the_commands_are_there(installation: Installation) -> None:
    assert "mailismus " in installation.run("twistd", "--help")
    assert "mailismus " in installation.run("twist", "--help")
    assert installation.run("mailismus", "--config", "mailismus.xml", "config", "check").endswith("mailismus.xml: ok\n")
    assert installation.run("python", "-m", "mailismus", "--version").startswith("Mailismus 0")
    assert "exit codes:" in installation.run("sendmail", "--help")
    assert "exit codes:" in installation.run("mailq", "--help")


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
