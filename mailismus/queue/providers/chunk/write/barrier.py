"""A barrier: files and directories that are made durable together, in one of several ways.

*Rules*: the file system was opened before anything of the barrier was written, so its sync tells of every failure. A way
that fails leaves nothing of the barrier trusted.
"""

from __future__ import annotations

from mailismus.disk.interface import IDirectory, IFile, close_read
from mailismus.queue.providers.chunk.write.directories import AnyDirectories
from mailismus.queue.providers.chunk.write.ways import SyncWay


class Barrier:
    """What is to be made durable: each file and each directory once."""

    def __init__(self, directories: AnyDirectories) -> None:
        self._queue = directories
        self._files: dict[int, IFile] = {}
        self._directories: dict[int, IDirectory] = {}
        self._to_close: list[IFile] = []

    def add(self, file: IFile, *, is_last: bool = False) -> None:
        """Bytes of this open file. `is_last`: it is closed behind the barrier."""
        self._files[id(file)] = file
        if is_last:
            self._to_close.append(file)

    def drop(self, file: IFile) -> None:
        """This file is none of it any more: its message failed."""
        self._files.pop(id(file), None)

    def add_directory(self, name: str, number: int = 0) -> None:
        """Names in this directory."""
        directory = self._queue.of(name, number)
        self._directories[id(directory)] = directory

    @property
    def count(self) -> int:
        """Files and directories."""
        return len(self._files) + len(self._directories)

    def sync(self, way: SyncWay = SyncWay.FILES) -> None:
        """On return all of it survives a power cut. Raises OSError: then none of it can be trusted to."""
        whole = self._queue.file_system
        try:
            if way is SyncWay.WHOLE and whole is not None:
                whole.sync()
            else:
                self._queue.disk.sync_together([*self._files.values(), *self._directories.values()])
        finally:
            for file in self._to_close:
                close_read(file)
