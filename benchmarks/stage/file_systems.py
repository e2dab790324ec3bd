"""File systems of their own to measure on: ext4 and XFS in images below the directory given, mounted by loop (root).

Rules: each is filled up and emptied once before it is used, so that no write or barrier has blocks to allocate in the image;
it is unmounted and its image removed afterwards, whatever happens.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.stage.directories import Stage
from tests.support.power import FileSystem, LoopDisk
from tests.support.processes import TrialError

SIZE_MB = 2500
_BLOCK = bytes(8 << 20)


def fill_up(directory: Path) -> None:
    """Writes all blocks of a file system once; nothing is left of it."""
    path = directory / "filling"
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(_BLOCK):
                pass
        except OSError as e:
            if e.errno != errno.ENOSPC:
                raise
        os.fsync(file.fileno())
    path.unlink()
    os.sync()


@contextlib.contextmanager
def ground(at: Stage, kind: FileSystem, size_mb: int = SIZE_MB) -> Iterator[Stage]:
    """A stage on such a file system, with the logs of `at`. Raises: TrialError."""
    directory = at.root / kind.value
    directory.mkdir(mode=0o711)
    with LoopDisk(directory, size_mb, kind) as disk:
        try:
            fill_up(disk.mount_point)
        except OSError as e:
            raise TrialError(f"{kind.value}: {e}") from e
        yield Stage(disk.mount_point, at.logs)
