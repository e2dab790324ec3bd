"""Quarantine: copies of the bytes that a repair is about to change, in `queue/corrupt/`, with a first line that says where
they are from.

*Rules*: a copy is whole and durable before anything is changed. It gets its name when it is whole (`spool.quarantine`), so
an interrupted repair leaves no partial copy under a final name. Bytes that a start or an earlier repair has copied are not
copied again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from itertools import chain

from mailismus.disk.interface import IDisk, IFile, NameKind
from mailismus.errors import Unavailable
from mailismus.spool.quarantine import PIECE, write_whole

_OF_SEGMENTS = ("journal", "log")
"""Directories of segments."""

_LONGEST_NAME = 180
"""Bytes: a file system takes 255, and more follows."""


class Quarantine:
    """The directory `corrupt/` of one queue. `line_files`: suffix of files of which a server sets aside single lines."""

    def __init__(self, disk: IDisk, queue_path: str, spool_path: str, line_files: str) -> None:
        self._disk = disk
        self._line_files = line_files
        self._roots = ((queue_path, ""), (spool_path, "spool-"))
        self.path = os.path.join(queue_path, "corrupt")
        self._is_there = False
        """The directory exists, durably."""

    def keep(self, path: str, offset: int = 0, size_bytes: int | None = None) -> None:
        """Copy these bytes of a file, durably. `size_bytes` None: up to its end, without trailing zeros. Raises OSError
        where the file can't be read, `Unavailable` where the copy can't be made: then nothing may be changed."""
        source = self._disk.open(path)
        try:
            end = _end_of(source) if size_bytes is None else offset + size_bytes
            note = b"from %b at %d\n" % (os.fsencode(path), offset)
            name = self._name_of(path, offset)
            crc = _crc_of(source, offset, max(offset, end))
            if path.endswith(self._line_files) and size_bytes is not None:
                name += f"-{crc:08x}"  # as a server calls a line that it sets aside: it does so once then
            try:
                self._keep(name, note, source, offset, max(offset, end))
            except OSError as error:
                why = error.strerror or str(error)
                what = f"{path} can't be copied to {self.path} ({why}), and without a copy nothing is changed"
                raise Unavailable(what) from error
        finally:
            source.close()

    def move(self, path: str) -> None:
        """Move the file or directory of this name as it is, durably. Raises OSError."""
        if self._disk.exists(path):
            self._ensure()
            name = next(name for name in _variants(self._name_of(path, 0)) if not self._disk.exists(self._path(name)))
            self._disk.rename(path, self._path(name))
            self._disk.sync_directory(self.path)
            self._disk.sync_directory(os.path.dirname(path))

    def _ensure(self) -> None:
        if not self._is_there:
            if not self._disk.exists(self.path):
                self._disk.make_directory(self.path)
            self._disk.sync_directory(os.path.dirname(self.path))  # always: its maker may have been killed before
            self._is_there = True

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _name_of(self, path: str, offset: int) -> str:
        if os.path.dirname(path) in [os.path.join(self._roots[0][0], name) for name in _OF_SEGMENTS]:
            return f"{_cut(os.path.basename(path))}-{offset}"  # as a start calls it, which copies it only once then
        for root, prefix in self._roots:
            if path.startswith(f"{root}/"):
                path = prefix + path[len(root) + 1 :]
                break
        return f"{_cut(path.strip('/').replace('/', '-'))}-{offset}"

    def _keep(self, name: str, note: bytes, source: IFile, offset: int, end: int) -> None:
        self._ensure()
        for variant in _variants(name):
            path = self._path(variant)
            if not self._disk.exists(path):
                write_whole(self._disk, path, chain([note], _pieces(source, offset, end)))
                break
            if self._disk.describe(path).kind is NameKind.FILE and self._is_kept(path, note, source, offset, end):
                break
        self._disk.sync_directory(self.path)  # always: the copy's maker may have been killed before

    def _is_kept(self, path: str, note: bytes, source: IFile, offset: int, end: int) -> bool:
        kept = self._disk.open(path)
        try:
            at = len(note)
            if kept.read_at(0, at) != note:
                return False
            for piece in _pieces(source, offset, end):
                if kept.read_at(at, len(piece)) != piece:
                    return False
                at += len(piece)
            return kept.size() == at
        finally:
            kept.close()


def _cut(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])


def _variants(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}~{number}"
        number += 1


def _pieces(file: IFile, offset: int, end: int) -> Iterator[bytes]:
    while offset < end and (piece := file.read_at(offset, min(PIECE, end - offset))):
        yield piece
        offset += len(piece)


def _crc_of(file: IFile, offset: int, end: int) -> int:
    """CRC-32 of these bytes. Raises OSError where one of them can't be read."""
    crc = 0
    for piece in _pieces(file, offset, end):
        crc = zlib.crc32(piece, crc)
    return crc


def _end_of(file: IFile) -> int:
    """Offset of the trailing zeros of a file."""
    end = file.size()
    while end:
        start = max(0, end - PIECE)
        piece = file.read_at(start, end - start).rstrip(b"\0")
        if piece:
            return start + len(piece)
        end = start
    return 0
