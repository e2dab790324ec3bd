"""The source distribution and the wheel: what they contain, and that a server installed from either delivers mail."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.project.first_message import deliver_one
from tests.project.installation import Installation, copy_sources
from tests.project.runners import ROOT, clean_environment

BUILD = "import sys; from setuptools import build_meta as b; to = sys.argv[1]; b.build_sdist(to); b.build_wheel(to)"
"""setuptools replaces `sys.argv`, so the directory is kept."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one wheel and one source distribution."""
    directory = tmp_path_factory.mktemp("built")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(directory)],
        cwd=copy_sources(directory),
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


@pytest.mark.parametrize("pattern", ["*.whl", pytest.param("*.tar.gz", marks=pytest.mark.exhaustive)])
def test_a_server_installed_from_it_delivers_a_message(built: Path, tmp_path: Path, pattern: str) -> None:
    """`.ci/package` builds a wheel of the source distribution each time, and sends a message through that."""
    (distribution,) = built.glob(pattern)
    installation = Installation(tmp_path, distribution)
    assert installation.run("mailismus", "--version").startswith("Mailismus 0.")
    assert "Traceback" not in deliver_one(installation.bin, installation.work)


def test_the_wheel_has_every_module_the_plugin_and_the_licence(built: Path) -> None:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        metadata = next(wheel.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    modules = {str(found.relative_to(ROOT)) for part in ("mailismus", "twisted") for found in (ROOT / part).rglob("*.py")}
    pages = {str(found.relative_to(ROOT)) for found in (ROOT / "mailismus/web/pages/files").iterdir()}
    assert len(pages) > 5
    assert modules | pages | {"mailismus/py.typed"} <= names
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"mailismus", "twisted"}
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert {"License-Expression: MIT", "License-File: LICENSE"} <= set(metadata.splitlines())


def test_the_source_distribution_has_the_documents_and_the_configuration(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("LICENSE", "README.rst", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "config/mailismus.xml"):
        assert name in names
    assert not [name for name in names if "__pycache__" in name or name.endswith("dropin.cache")]
