"""Patches: bytes that are to be others, seen by who reads through here before they are written.

A check that changes nothing sees the queue as a repair would make it, and so tells damage from what only follows of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.disk.interface import IDisk, IFile


@attrs.frozen
class Patch:
    """These bytes belong here."""

    path: str
    offset: int
    data: bytes


class PatchedFile:
    """An `IFile` that is only read, with patches over it."""

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
        raise NotImplementedError("is only read")

    def truncate(self, size_bytes: int) -> None:
        raise NotImplementedError("is only read")

    def sync(self) -> None:
        raise NotImplementedError("is only read")

    def close(self) -> None:
        self._file.close()


def open_patched(disk: IDisk, path: str, patches: Sequence[Patch]) -> IFile:
    """The file with its patches over it. Raises OSError."""
    file = disk.open(path)
    here = [patch for patch in patches if patch.path == path]
    return PatchedFile(file, here) if here else file
