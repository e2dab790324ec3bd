"""The open directories of a queue: names below them, by the number of a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy

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
        self._beside: list[ChunkDirectories] = []
        self.file_system: IFileSystem | None = None
        """That of all of them; None: each file is synced by itself. Read only."""
        try:
            for name in (PID, INTD, TODO, BOUNCE, IDS):
                self._plain[name] = disk.open_directory(os.path.join(root, name))
            for name, parts in self._parts.items():
                for part in range(split):
                    parts.append(disk.open_directory(os.path.join(root, name, str(part))))
            self.file_system = disk.open_file_system([root, *self._paths()])
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
        return Presence(dict[str, INamed](self._paths()), locks)

    def beside(self) -> ChunkDirectories:
        """The same, for another thread that makes names in todo and files durable. Descriptors of todo and of the file
        system are its own: the system tells each of a failure once, and none may hear of another's in place of its own.
        Closed with these. Raises OSError."""
        other = copy(self)
        other._plain = {**self._plain, TODO: self.disk.open_directory(os.path.join(self.root, TODO))}
        other.file_system, other._beside = None, []
        self._beside.append(other)
        if self.file_system is not None:
            other.file_system = self.disk.open_file_system([self.root, *self._paths()])
        return other

    def _paths(self) -> dict[str, IDirectory]:
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
        for other in self._beside:
            other.of(TODO).close()
            if other.file_system is not None:
                other.file_system.close()
