"""The bare calls that make bytes durable, without a server, timed in turn with each other.

`writes`: a batch of 4 KiB messages into blocks that exist already, by pwritev and fdatasync, or by pwritev with RWF_DSYNC.
`new_files`: files of 4 KiB in some directories, then fsync of each and of their directories, or one syncfs. The product's
own calls (`mailismus.disk.posix`) are used where it has them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from benchmarks.drain import percentile
from mailismus.disk.posix import PosixDisk

MESSAGE = bytes(range(256)) * 16
FILE_BYTES = 64 << 20
DIRECTORIES = 16
LEAST_ROUNDS = 2


@attrs.frozen
class Timed:
    """How long one way took, each time (seconds)."""

    took_s: tuple[float, ...]
    began_at_s: tuple[float, ...] = ()
    """Monotonic."""

    @property
    def median_ms(self) -> float:
        """Of all."""
        return percentile(self.took_s, 0.5) * 1e3

    @property
    def p95_ms(self) -> float:
        """Of all."""
        return percentile(self.took_s, 0.95) * 1e3


def in_turn(ways: Sequence[Callable[[], float]], seconds: float, most: int, pause_s: float = 0.0) -> list[Timed]:
    """Each way again and again, one after the other, for so long, or so often, each after a pause. A way gives the seconds
    it took."""
    deadline_s = time.monotonic() + seconds
    took: list[list[float]] = [[] for _ in ways]
    began: list[list[float]] = [[] for _ in ways]
    rounds = 0
    while rounds < LEAST_ROUNDS or (rounds < most and time.monotonic() < deadline_s):
        for index, way in enumerate(ways):
            time.sleep(pause_s)
            began[index].append(time.monotonic())
            took[index].append(way())
        rounds += 1
    return [Timed(tuple(found), tuple(at)) for found, at in zip(took, began, strict=True)]


class WrittenFile:
    """A file whose blocks have been written: every later write finds them. Used in a `with`."""

    def __init__(self, path: Path, size_bytes: int = FILE_BYTES) -> None:
        self.path, self._size = path, size_bytes
        self._next = 0
        self.fd = -1

    def __enter__(self) -> WrittenFile:
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        zeros = bytes(1 << 20)
        for offset in range(0, self._size, len(zeros)):
            os.pwrite(self.fd, zeros, offset)
        os.fsync(self.fd)
        return self

    def place(self, size_bytes: int) -> int:
        """Where the next batch goes: behind the last one, at last at the beginning again."""
        offset = self._next if self._next + size_bytes <= self._size else 0
        self._next = offset + size_bytes
        return offset

    def append(self, buffers: Sequence[bytes]) -> float:
        """One batch and its barrier; how long both took (seconds)."""
        offset, began_s = self.place(sum(map(len, buffers))), time.perf_counter()
        os.pwritev(self.fd, buffers, offset)
        os.fdatasync(self.fd)
        return time.perf_counter() - began_s

    def append_dsync(self, buffers: Sequence[bytes]) -> float:
        """The same in one call."""
        offset, began_s = self.place(sum(map(len, buffers))), time.perf_counter()
        os.pwritev(self.fd, buffers, offset, os.RWF_DSYNC)
        return time.perf_counter() - began_s

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        self.path.unlink()


def writes(directory: Path, messages: int, seconds: float) -> list[Timed]:
    """pwritev and fdatasync; pwritev with RWF_DSYNC."""
    batch = [MESSAGE] * messages
    with WrittenFile(directory / "written") as file:
        return in_turn([lambda: file.append(batch), lambda: file.append_dsync(batch)], seconds, 2000)


def new_files(directory: Path, files: int, seconds: float, pause_s: float = 0.0) -> list[Timed]:
    """fsync of each and of their directories; syncfs. The writing counts too, the removal does not. `pause_s`: before each,
    so that what others have written meanwhile is part of what syncfs has to write."""
    disk = PosixDisk()
    homes = [directory / f"home-{index}" for index in range(min(files, DIRECTORIES))]
    for home in homes:
        home.mkdir()
    os.sync()
    paths = [str(homes[index % len(homes)] / f"{index}.msg") for index in range(files)]

    def write() -> None:
        for path in paths:
            file = disk.create(path)
            file.write_at(0, [MESSAGE])
            file.close()

    def one_by_one() -> None:
        for path in paths:
            file = disk.open(path)
            file.sync()
            file.close()
        for home in homes:
            disk.sync_directory(str(home))

    def way(sync: Callable[[], None]) -> Callable[[], float]:
        def act() -> float:
            began_s = time.perf_counter()
            write()
            sync()
            took_s = time.perf_counter() - began_s
            for path in paths:
                disk.unlink(path)
            return took_s

        return act

    try:
        return in_turn([way(one_by_one), way(lambda: disk.sync_file_system(str(directory)))], seconds, 500, pause_s)
    finally:
        for home in homes:
            home.rmdir()
