"""Our server with its disk door counted: `python -m benchmarks.measure.disk_calls COUNTS twistd's arguments...`.

Barriers, and files made, are counted where they are called, into a file that whoever measures maps too: exact, at no cost
to speak of, and no tracer stops the server. Rules: the counts of one process, from its start on. Not here: the proof
from outside that nothing is missed (`barriers`, the harnesses' `sync_check`).
"""

from __future__ import annotations

import mmap
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import attrs

from benchmarks.stage.servers import Ours, Place

MESSAGE_FILE, CLUSTER, SEGMENT = ".msg", ".mqc", ".mqj"
_COUNTS = struct.Struct("<6Q")
T = TypeVar("T")


@attrs.frozen
class Counts:
    """So far. Barriers by kind: of files' bytes, of directories, of whole file systems; files made by the ending of their
    names."""

    files: int = 0
    directories: int = 0
    file_systems: int = 0
    message_files: int = 0
    clusters: int = 0
    segments: int = 0

    @property
    def barriers(self) -> int:
        """All of them."""
        return self.files + self.directories + self.file_systems

    def minus(self, before: Counts) -> Counts:
        """What came since."""
        return Counts(*(one - other for one, other in zip(attrs.astuple(self), attrs.astuple(before), strict=True)))


class Ledger:
    """Counts in a mapped file. One process writes, others read."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _COUNTS.size)
        self._lock = threading.Lock()
        self._numbers = [0] * 6

    def add(self, index: int) -> None:
        """One more; any thread."""
        with self._lock:
            self._numbers[index] += 1
            _COUNTS.pack_into(self._map, 0, *self._numbers)

    def read(self) -> Counts:
        """As of now."""
        return Counts(*_COUNTS.unpack_from(self._map, 0))


class Counted(Ours):
    """Mailismus, counted. Its counts lie beside its logs."""

    _counts: Ledger | None = None

    def program(self, place: Place) -> list[str]:
        """This module in place of twistd's starter."""
        path = place.logs / "counts"
        path.unlink(missing_ok=True)
        self._counts = Ledger(path)
        return ["-m", "benchmarks.measure.disk_calls", str(path)]

    def counts(self) -> Counts:
        """Of the process started last."""
        assert self._counts is not None
        return self._counts.read()


def count(ledger: Ledger) -> None:
    """From now on every barrier and every new file of this process is counted."""
    from mailismus.disk.file_system import PosixFileSystem
    from mailismus.disk.interface import IFile
    from mailismus.disk.posix import PosixDirectory, PosixDisk, PosixFile

    def counted(call: Callable[..., T], index: int) -> Callable[..., T]:
        def act(*arguments: object) -> T:
            ledger.add(index)
            return call(*arguments)

        return act

    endings = {MESSAGE_FILE: 3, CLUSTER: 4, SEGMENT: 5}
    create = PosixDisk.create

    def create_counted(self: PosixDisk, path: str) -> IFile:
        index = endings.get(path[-4:])
        if index is not None:
            ledger.add(index)
        return create(self, path)

    PosixFile.sync = counted(PosixFile.sync, 0)  # type: ignore[method-assign]  # the point of it
    PosixDisk.sync_directory = counted(PosixDisk.sync_directory, 1)  # type: ignore[method-assign]  # likewise
    PosixDisk.sync_file_system = counted(PosixDisk.sync_file_system, 2)  # type: ignore[method-assign]  # likewise
    PosixDirectory.sync = counted(PosixDirectory.sync, 1)  # type: ignore[method-assign]  # likewise
    PosixFileSystem.sync = counted(PosixFileSystem.sync, 2)  # type: ignore[method-assign]  # likewise
    PosixDisk.create = create_counted  # type: ignore[method-assign]  # likewise


if __name__ == "__main__":
    from twisted.scripts.twistd import run

    count(Ledger(Path(sys.argv.pop(1))))
    run()  # type: ignore[no-untyped-call]  # Twisted's
