"""Bytes and barriers of this process, counted where it calls the disk, and of the device below, as the kernel counts them.

Rules: barriers are those of files, directories and file systems together. A device's bytes are those of all its users; on
a file system of its own that is this process, and the file system's own log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import attrs

from mailismus.disk.interface import IFile
from mailismus.disk.posix import PosixDisk, PosixFile

SECTOR = 512


@attrs.frozen
class DiskUse:
    """So far."""

    written_bytes: int = 0
    read_bytes: int = 0
    barriers: int = 0
    files: int = 0
    """Files made."""

    def minus(self, before: DiskUse) -> DiskUse:
        """What came since."""
        return DiskUse(*(one - other for one, other in zip(attrs.astuple(self), attrs.astuple(before), strict=True)))


class DiskCounter:
    """Counts what this process does from its making on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._use = [0, 0, 0, 0]
        write_at, read_at, sync = PosixFile.write_at, PosixFile.read_at, PosixFile.sync
        create, sync_directory, sync_file_system = PosixDisk.create, PosixDisk.sync_directory, PosixDisk.sync_file_system

        def write_counted(file: PosixFile, offset: int, buffers: Sequence[bytes]) -> None:
            self._add(0, sum(map(len, buffers)))
            write_at(file, offset, buffers)

        def read_counted(file: PosixFile, offset: int, size_bytes: int) -> bytes:
            data = read_at(file, offset, size_bytes)
            self._add(1, len(data))
            return data

        def sync_counted(file: PosixFile) -> None:
            self._add(2, 1)
            sync(file)

        def create_counted(disk: PosixDisk, path: str) -> IFile:
            self._add(3, 1)
            return create(disk, path)

        def directory_counted(disk: PosixDisk, path: str) -> None:
            self._add(2, 1)
            sync_directory(disk, path)

        def file_system_counted(disk: PosixDisk, path: str) -> None:
            self._add(2, 1)
            sync_file_system(disk, path)

        PosixFile.write_at = write_counted  # type: ignore[method-assign, assignment]  # the point of it
        PosixFile.read_at = read_counted  # type: ignore[method-assign, assignment]  # likewise
        PosixFile.sync = sync_counted  # type: ignore[method-assign, assignment]  # likewise
        PosixDisk.create = create_counted  # type: ignore[method-assign, assignment]  # likewise
        PosixDisk.sync_directory = directory_counted  # type: ignore[method-assign, assignment]  # likewise
        PosixDisk.sync_file_system = file_system_counted  # type: ignore[method-assign, assignment]  # likewise

    def _add(self, index: int, count: int) -> None:
        with self._lock:
            self._use[index] += count

    def now(self) -> DiskUse:
        """So far."""
        return DiskUse(*self._use)


def device_bytes(path: Path) -> int:
    """Bytes written so far to the device of the file system that holds `path`; 0 where the kernel does not say."""
    device = os.stat(path).st_dev
    try:
        fields = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
    except OSError:
        return 0
    return int(fields[6]) * SECTOR


def used_bytes(path: Path) -> int:
    """Bytes that the files below a directory take."""
    found = 0
    for directory, _, names in os.walk(path):
        for name in names:
            try:
                found += os.stat(os.path.join(directory, name)).st_blocks * SECTOR
            except FileNotFoundError:
                pass  # removed meanwhile
    return found
