"""Patches: bytes that are to be others, seen by who reads through here before they are written.

A check that changes nothing sees the queue as a repair would make it, and so tells damage from what only follows of it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

import attrs

from mailismus.disk.interface import IDisk, IFile, NameStanding


@attrs.frozen
class Patch:
    """These bytes belong here."""

    path: str
    offset: int
    data: bytes


class PatchedFile:
    """An `IFile` with patches over it, as if opened for reading alone: what would change it raises OSError (EBADF)."""

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

    def standing(self, path: str) -> NameStanding:
        return self._file.standing(path)

    def close(self) -> None:
        self._file.close()


def _only_read() -> OSError:
    return OSError(errno.EBADF, os.strerror(errno.EBADF))


def open_patched(disk: IDisk, path: str, patches: Sequence[Patch]) -> IFile:
    """The file with its patches over it. Raises OSError."""
    file = disk.open(path)
    here = [patch for patch in patches if patch.path == path]
    return PatchedFile(file, here) if here else file
