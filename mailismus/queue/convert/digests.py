"""A digest of each content, in a file: written while contents are copied, read in the same order when they are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from mailismus.disk.interface import IDisk, close_read
from mailismus.errors import Corrupt

SIZE = 32
"""Bytes of a digest (SHA-256)."""
_AT_ONCE = 8192
"""Digests that are written or read at once."""


class ContentDigests:
    """Digests by the order in which they were added."""

    def __init__(self, disk: IDisk, path: str) -> None:
        self._disk, self._path = disk, path
        self._file = disk.create(path)
        self._offset = 0
        self._rest: list[bytes] = []

    def add(self, digest: bytes) -> None:
        """Add the next one. Raises `OSError`."""
        self._rest.append(digest)
        if len(self._rest) >= _AT_ONCE:
            self._write()

    def all(self) -> Iterator[bytes]:
        """All that were added. Raises `OSError`, and `Corrupt` where the file has lost some."""
        self._write()
        for offset in range(0, self._offset, SIZE * _AT_ONCE):
            size_bytes = min(SIZE * _AT_ONCE, self._offset - offset)
            data = self._file.read_at(offset, size_bytes)
            if len(data) != size_bytes:
                raise Corrupt(self._path, offset + len(data), "digests are missing")
            for at in range(0, size_bytes, SIZE):
                yield data[at : at + SIZE]

    def close(self) -> None:
        """Close the file."""
        close_read(self._file)

    def _write(self) -> None:
        if self._rest:
            self._file.write_at(self._offset, [b"".join(self._rest)])
            self._offset += SIZE * len(self._rest)
            self._rest = []


class DigestedContent:
    """Pieces of a content on their way, with their digest and length."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._hash = hashlib.sha256()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._hash.update(piece)
            self.size_bytes += len(piece)
            yield piece

    def digest(self) -> bytes:
        """Of the pieces that have gone by."""
        return self._hash.digest()
