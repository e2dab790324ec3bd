"""Where a benchmark happens: fresh directories on the file system to be measured, logs in memory, all removed afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs

from benchmarks.stage.progress import shown
from benchmarks.stage.servers import Place
from tests.support.processes import TrialError

MEMORY_FILE_SYSTEMS = frozenset(("tmpfs", "ramfs"))


@attrs.frozen
class Stage:
    """Where the runs happen: `root` on the file system to be measured, `logs` in memory."""

    root: Path
    logs: Path

    @contextlib.contextmanager
    def place(self, sink_port: int) -> Iterator[Place]:
        """Fresh directories for one run, removed afterwards."""
        directory = Path(tempfile.mkdtemp(prefix="run-", dir=self.root))
        logs = Path(tempfile.mkdtemp(prefix="run-", dir=self.logs))
        directory.chmod(0o711)
        logs.chmod(0o711)
        try:
            yield Place(directory, directory / "queue", logs, sink_port)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            shutil.rmtree(logs, ignore_errors=True)


def file_system(path: Path) -> str:
    """The type of the file system that holds a directory."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, found = line.split()[:3]
        if len(mount) >= len(best) and path.resolve().is_relative_to(mount):
            best, kind = mount, found
    return kind


@contextlib.contextmanager
def stage(directory: Path) -> Iterator[Stage]:
    """A stage below `directory`, with a line of progress at a terminal. Raises: TrialError where barriers cost nothing."""
    kind = file_system(directory)
    if kind in MEMORY_FILE_SYSTEMS:
        raise TrialError(f"{directory} is on {kind}, where a barrier is not a barrier; name another with --directory")
    root = Path(tempfile.mkdtemp(prefix="mailismus-bench-", dir=directory))
    logs = Path(tempfile.mkdtemp(prefix="mailismus-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    root.chmod(0o711)
    logs.chmod(0o711)
    try:
        with shown():
            yield Stage(root, logs)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(logs, ignore_errors=True)
