"""The open directories of a queue: names below them, by the number of a file."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mailismus.disk.interface import IDirectory, IDisk, IFileSystem, INamed
from mailismus.disk.presence import Presence
from mailismus.queue.providers.chunk.format.version import BOUNCE, IDS, INTD, PID, SPLIT_DIRECTORIES, TODO


class ChunkDirectories:
    """The directories of one queue; all exist. `split`: parts of those in parts."""

    def __init__(self, disk: IDisk, root: str, split: int) -> None:
        """Raises OSError, and then nothing stays open."""
        self.disk, self.root, self.split = disk, root, split
        self._plain: dict[str, IDirectory] = {}
        self._parts: dict[str, list[IDirectory]] = {name: [] for name in SPLIT_DIRECTORIES}
        self.file_system: IFileSystem | None = None
        """That of all of them; None: each file is synced by itself. Read only."""
        try:
            for name in (PID, INTD, TODO, BOUNCE, IDS):
                self._plain[name] = disk.open_directory(os.path.join(root, name))
            for name, parts in self._parts.items():
                for part in range(split):
                    parts.append(disk.open_directory(os.path.join(root, name, str(part))))
            self.file_system = disk.open_file_system([root, *self.paths()])
        except BaseException:
            self.close()
            raise

    def of(self, name: str, number: int = 0) -> IDirectory:
        """The directory with the file of this number."""
        parts = self._parts.get(name)
        return self._plain[name] if parts is None else parts[number % self.split]

    def all(self, name: str) -> list[IDirectory]:
        """The directory, or all its parts."""
        parts = self._parts.get(name)
        return [self._plain[name]] if parts is None else parts

    def path_of(self, name: str, number: int) -> str:
        """The path of a file, for messages and for readers."""
        if name in self._parts:
            return os.path.join(self.root, name, str(number % self.split), str(number))
        return os.path.join(self.root, name, str(number))

    def presence(self, locks: Mapping[str, INamed]) -> Presence:
        """All of them, below the queue's own, and these locks by path: what must keep its name while a server works here."""
        return Presence(dict[str, INamed](self.paths()), locks)

    def paths(self) -> dict[str, IDirectory]:
        """All of them by path."""
        paths = {os.path.join(self.root, name): directory for name, directory in self._plain.items()}
        for name, parts in self._parts.items():
            paths.update({os.path.join(self.root, name, str(part)): directory for part, directory in enumerate(parts)})
        return paths

    def close(self) -> None:
        """Close them. Harmless when repeated; never fails."""
        for directory in [*self._plain.values(), *(part for parts in self._parts.values() for part in parts)]:
            directory.close()
        if self.file_system is not None:
            self.file_system.close()


class EndsDirectories:
    """The same directories, for another thread that makes names in todo and files durable. Descriptors of todo and of the
    file system are its own: the system tells each of a failure once, and none may hear of another's in place of its own."""

    def __init__(self, directories: ChunkDirectories) -> None:
        """`directories` stay open meanwhile. Raises OSError."""
        self._directories, self.disk = directories, directories.disk
        self._todo = self.disk.open_directory(os.path.join(directories.root, TODO))
        self.file_system: IFileSystem | None = None
        if directories.file_system is not None:
            self.file_system = self.disk.open_file_system([directories.root, *directories.paths()])

    def of(self, name: str, number: int = 0) -> IDirectory:
        """As `ChunkDirectories.of`."""
        return self._todo if name == TODO else self._directories.of(name, number)

    def close(self) -> None:
        """Close what is its own. Harmless when repeated; never fails."""
        self._todo.close()
        if self.file_system is not None:
            self.file_system.close()


AnyDirectories = ChunkDirectories | EndsDirectories
