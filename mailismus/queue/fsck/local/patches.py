"""Patches: corrected bytes laid over a file for reading, before a repair writes them.

A check, which changes nothing, sees the queue as a repair would leave it, and so reports damage but not its consequences.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

import attrs

from mailismus.disk.interface import IDisk, IFile, NameFacts, NameStanding


@attrs.frozen
class Patch:
    """The right bytes at this place."""

    path: str
    offset: int
    data: bytes


class PatchedFile:
    """An `IFile` with patches over it, read-only: methods that change it raise OSError (EBADF)."""

    def __init__(self, file: IFile, patches: Sequence[Patch]) -> None:
        self._file = file
        self._patches = patches

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        data = self._file.read_at(offset, size_bytes)
        for patch in self._patches:
            start = max(patch.offset, offset)
            end = min(patch.offset + len(patch.data), offset + len(data))
            if start < end:
                wanted = patch.data[start - patch.offset : end - patch.offset]
                data = data[: start - offset] + wanted + data[end - offset :]
        return data

    def size(self) -> int:
        return self._file.size()

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        raise _only_read()

    def truncate(self, size_bytes: int) -> None:
        raise _only_read()

    def sync(self) -> None:
        raise _only_read()

    def describe(self) -> NameFacts:
        return self._file.describe()

    def lock(self) -> bool:
        raise _only_read()

    def standing(self, path: str) -> NameStanding:
        return self._file.standing(path)

    def close(self) -> None:
        self._file.close()


def _only_read() -> OSError:
    return OSError(errno.EBADF, os.strerror(errno.EBADF))


def open_patched(disk: IDisk, path: str, patches: Sequence[Patch]) -> IFile:
    """Open the file, with its patches over it. Raises OSError."""
    file = disk.open(path)
    here = [patch for patch in patches if patch.path == path]
    return PatchedFile(file, here) if here else file
