"""What a service needs of the machine and is not there, in a sentence that says how to get it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

SEARCHED = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
JAVA_VERSIONS = (11, 17)
"""Versions that Cassandra 5.0 supports."""


def program(name: str) -> str | None:
    """The full path of a program, also where only root has it in `PATH`."""
    return shutil.which(name, path=SEARCHED)


def missing_programs(names: Iterable[str], packages: str) -> list[str]:
    """A sentence for the programs that are not there; `packages`: those of Debian that have them."""
    absent = [name for name in names if program(name) is None]
    install = f"apt-get install --no-install-recommends {packages}"
    return [f"{', '.join(absent)} not found; Debian: {install}"] if absent else []


def missing_java() -> list[str]:
    """A sentence if no fitting Java is there."""
    java = program("java")
    if java is None:
        return ["java not found; Debian: apt-get install --no-install-recommends openjdk-17-jre-headless"]
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', shown)
    version = int(found[1]) if found else 0
    if version in JAVA_VERSIONS:
        return []
    return [f"{java} is Java {version or 'of an unknown version'}; Cassandra 5.0 runs on Java 11 or 17"]


def missing_attributes(directory: Path) -> list[str]:
    """A sentence if files there can't have extended attributes of users, where Swift keeps what it knows of an object."""
    try:
        os.setxattr(directory, "user.mailismus", b"1")
        os.removexattr(directory, "user.mailismus")
    except OSError as error:
        reason = error.strerror
        return [f"{directory}: no extended attributes of users ({reason}); set TMPDIR to a directory on ext4 or XFS"]
    return []
