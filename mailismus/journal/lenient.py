"""Lenient reading of a journal: a segment that can't be read is reported, and the others are read.

For offline commands alone. A start must not read so: it judges clusters and message files by the whole journal.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence

from mailismus.disk.interface import IDisk, IFile, NameFacts, NameStanding, close_read
from mailismus.journal.replay import SUFFIX, FoundSegment, Journal, arrange, look_at_file

NotRead = Callable[[str, OSError], None]
"""Called once for each segment that can't be read."""


class LenientFile:
    """A read-only `IFile`. After the first failed read it has no bytes."""

    def __init__(self, path: str, file: IFile, not_read: NotRead) -> None:
        self._path = path
        self._file = file
        self._not_read = not_read
        self._is_lost = False

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        if self._is_lost:
            return b""
        try:
            return self._file.read_at(offset, size_bytes)
        except OSError as error:
            self._is_lost = True
            self._not_read(self._path, error)
            return b""

    def size(self) -> int:
        return self._file.size()

    def describe(self) -> NameFacts:
        return self._file.describe()

    def lock(self) -> bool:
        raise io.UnsupportedOperation("it is only read")

    def standing(self, path: str) -> NameStanding:
        return self._file.standing(path)

    def close(self) -> None:
        self._file.close()

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        raise io.UnsupportedOperation("it is only read")

    def truncate(self, size_bytes: int) -> None:
        raise io.UnsupportedOperation("it is only read")

    def sync(self) -> None:
        raise io.UnsupportedOperation("it is only read")


def survey_leniently(disk: IDisk, directory: str, not_read: NotRead) -> Journal:
    """As `journal.replay.survey`, without segments that can't be read. Raises OSError where the directory can't be
    listed."""
    found: list[FoundSegment] = []
    try:
        for name in sorted(disk.list_directory(directory)):
            if name.endswith(SUFFIX):
                path = os.path.join(directory, name)
                try:
                    file = disk.open(path)
                except OSError as error:
                    not_read(path, error)
                else:
                    found.append(look_at_file(path, LenientFile(path, file, not_read)))
        return arrange(found)
    except BaseException:
        for segment in found:
            close_read(segment.file)
        raise
