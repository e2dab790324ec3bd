"""A barrier: files and directories that are made durable together.

*Rules*: up to `FEW` of them are synced one by one; more by one sync of the file system, which is cheaper from there on, but
writes what others have written too.
"""

from __future__ import annotations

from mailismus.disk.interface import IDirectory, IFile, close_read
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

FEW = 16


class Barrier:
    """What is to be made durable: each file and each directory once."""

    def __init__(self, directories: ChunkDirectories) -> None:
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

    def sync(self) -> None:
        """On return all of it survives a power cut. Raises OSError: then none of it can be trusted to."""
        try:
            if len(self._files) + len(self._directories) > FEW:
                self._queue.disk.sync_file_system(self._queue.root)
                return
            for file in self._files.values():
                file.sync()
            for directory in self._directories.values():
                directory.sync()
        finally:
            for file in self._to_close:
                close_read(file)
