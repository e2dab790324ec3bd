"""Cassandra's jars: fetched by Maven, pinned by `pom.xml`, compared with the checksums beside it.

They are kept between runs, in `MAILISMUS_CASSANDRA`, or else in the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.services.missing import program

VERSION = "5.0.8"
HERE = Path(__file__).parent
POM = HERE / "pom.xml"
CHECKSUMS = HERE / "cassandra.sha256"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
"""Of a pinned version: the one that an old Maven picks by itself is old too."""


class FetchError(Exception):
    """The jars can't be had, and why."""


def jars_directory() -> Path:
    """Where the jars are, or would be."""
    chosen = os.environ.get("MAILISMUS_CASSANDRA")
    if chosen:
        return Path(chosen)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "mailismus" / f"cassandra-{VERSION}"


def expected() -> dict[str, str]:
    """Checksum of each jar, by name."""
    return {name: digest for digest, name in (line.split() for line in CHECKSUMS.read_text().splitlines())}


def missing_jars() -> list[str]:
    """A sentence if jars are missing. Their checksums were compared when they were fetched."""
    directory = jars_directory()
    absent = [name for name in expected() if not (directory / name).is_file()]
    if not absent:
        return []
    count = "all" if len(absent) == len(expected()) else str(len(absent))
    return [f"{count} jars of Cassandra {VERSION} are missing in {directory}: python -m tests.services fetch (needs mvn)"]


def fetch(home: Path | None = None) -> Path:
    """Fetch the jars if they are missing; their directory. Raises `FetchError`; then nothing is changed."""
    directory = jars_directory()
    if not missing_jars():
        return directory
    maven = program("mvn")
    if maven is None:
        raise FetchError("mvn not found; Debian: apt-get install --no-install-recommends maven openjdk-17-jdk-headless")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=directory.parent) as work:
        fetched = Path(work) / "jars"
        fetched.mkdir()
        shutil.copy(POM, work)
        # -C: a file whose checksum in the repository differs is an error.
        command = [maven, "-B", "-q", "-C", "-f", f"{work}/pom.xml", COPY]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={fetched}"]
        environment = {**os.environ, "MAVEN_OPTS": "-Xmx256m"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise FetchError(f"mvn ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-2000:]}")
        compare(fetched)
        if directory.exists():
            shutil.rmtree(directory)
        fetched.rename(directory)
    return directory


def compare(directory: Path) -> None:
    """Raise `FetchError` unless exactly the expected jars are there, each with its checksum."""
    wanted = expected()
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}
    if found != wanted:
        wrong = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        raise FetchError(f"not the jars of {CHECKSUMS.name}: {', '.join(wrong)}")
