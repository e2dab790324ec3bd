"""A disk that remembers every act, and every state that a crash after any of them may leave.

Two readings of the file system: `POSIX` (a name is durable with a sync of its directory alone) and `EXT4` (a sync of a
new file makes its name durable too). `kill -9` leaves everything; a power cut may undo any act that no barrier covers,
and may leave a write torn, its rest missing or zero.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Sequence

import attrs

from mailismus.disk.interface import IFile
from tests.fakes.disk import MemoryDisk, MemoryFile, _Inode


class FileSystem(enum.Enum):
    """How much a barrier covers."""

    POSIX = enum.auto()
    EXT4 = enum.auto()


class Kind(enum.Enum):
    """What an act does."""

    MKDIR = enum.auto()
    CREATE = enum.auto()
    WRITE = enum.auto()
    SYNC = enum.auto()
    SYNC_DIRECTORY = enum.auto()
    SYNC_FILE_SYSTEM = enum.auto()
    TRUNCATE = enum.auto()
    RENAME = enum.auto()
    LINK = enum.auto()
    UNLINK = enum.auto()
    MARK = enum.auto()


@attrs.frozen(eq=False)
class Act:
    """One act. `inode` names a file for life, whatever its name; `data` of a write, `to` of a rename or a link."""

    kind: Kind
    path: str
    inode: int = 0
    offset: int = 0
    data: bytes = b""
    to: str = ""
    mark: object = None


class RecordingDisk(MemoryDisk):
    """A `MemoryDisk` that keeps a log."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Act] = []
        self._ids: dict[int, int] = {}

    def mark(self, what: object) -> None:
        """A fact that the outside world knows from here on."""
        self.log.append(Act(Kind.MARK, "", mark=what))

    def id_of(self, inode: _Inode) -> int:
        return self._ids.setdefault(id(inode), len(self._ids) + 1)

    def make_directory(self, path: str) -> None:
        super().make_directory(path)
        self.log.append(Act(Kind.MKDIR, path))

    def create(self, path: str) -> IFile:
        super().create(path)
        self.log.append(Act(Kind.CREATE, path, self.id_of(self.names[path])))
        return _RecordingFile(self, path, self.names[path])

    def open(self, path: str) -> IFile:
        super().open(path)
        return _RecordingFile(self, path, self.names[path])

    def rename(self, path: str, new_path: str) -> None:
        inode = self.id_of(self.names[path])
        super().rename(path, new_path)
        self.log.append(Act(Kind.RENAME, path, inode, to=new_path))

    def link(self, path: str, new_path: str) -> None:
        super().link(path, new_path)
        self.log.append(Act(Kind.LINK, path, self.id_of(self.names[path]), to=new_path))

    def unlink(self, path: str) -> None:
        inode = self.id_of(self.names[path]) if path in self.names else 0
        super().unlink(path)
        self.log.append(Act(Kind.UNLINK, path, inode))

    def sync_file_system(self, path: str) -> None:
        super().sync_file_system(path)
        self.log.append(Act(Kind.SYNC_FILE_SYSTEM, path))

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.log.append(Act(Kind.SYNC_DIRECTORY, path))


class _RecordingFile(MemoryFile):
    def __init__(self, disk: RecordingDisk, path: str, inode: _Inode) -> None:
        super().__init__(disk, path, inode)
        self._recorder = disk
        self._id = disk.id_of(inode)

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        super().write_at(offset, buffers)
        self._recorder.log.append(Act(Kind.WRITE, self._path, self._id, offset, b"".join(buffers)))

    def truncate(self, size_bytes: int) -> None:
        super().truncate(size_bytes)
        self._recorder.log.append(Act(Kind.TRUNCATE, self._path, self._id, size_bytes))

    def sync(self) -> None:
        super().sync()
        self._recorder.log.append(Act(Kind.SYNC, self._path, self._id))


@attrs.frozen
class Torn:
    """A write of which only so many bytes arrived; the rest is as it was, or zero."""

    act: int
    kept: int
    is_zero_filled: bool


@attrs.frozen
class CrashState:
    """What a crash after so many acts leaves: all of them but those that are lost, one of them perhaps torn."""

    length: int
    lost: frozenset[int]
    torn: Torn | None = None


def unsure(log: Sequence[Act], length: int, file_system: FileSystem) -> list[int]:
    """The acts that a power cut after the first `length` acts may undo."""
    found = []
    for at in range(length):
        act = log[at]
        later = log[at + 1 : length]
        if any(one.kind is Kind.SYNC_FILE_SYSTEM for one in later):
            continue
        if act.kind in (Kind.WRITE, Kind.TRUNCATE):
            if not any(one.kind is Kind.SYNC and one.inode == act.inode for one in later):
                found.append(at)
        elif act.kind in (Kind.CREATE, Kind.RENAME, Kind.LINK, Kind.UNLINK):
            synced = {one.path for one in later if one.kind is Kind.SYNC_DIRECTORY}
            if all(os.path.dirname(path) in synced for path in (act.path, act.to) if path):
                continue
            is_covered = file_system is FileSystem.EXT4 and act.kind is Kind.CREATE
            if not (is_covered and any(one.kind is Kind.SYNC and one.inode == act.inode for one in later)):
                found.append(at)
    return found


def crash_states(log: Sequence[Act], first: int, file_system: FileSystem) -> Iterator[CrashState]:
    """The states worth a look, from a crash after `first` acts on, each once."""
    seen: set[tuple[frozenset[int], Torn | None, int]] = set()
    for length in range(first, len(log) + 1):
        loose = unsure(log, length, file_system)
        marks = sum(act.kind is Kind.MARK for act in log[:length])
        for lost, torn in _losses(log, loose):
            kept = length if not lost and torn is None else -1
            key = (lost | frozenset((kept,)), torn, marks)
            if key not in seen:
                seen.add(key)
                yield CrashState(length, lost, torn)


def _losses(log: Sequence[Act], loose: list[int]) -> Iterator[tuple[frozenset[int], Torn | None]]:
    yield frozenset(), None
    yield frozenset(loose), None
    for at in loose:
        yield frozenset((at,)), None
        yield frozenset(loose) - {at}, None
        if log[at].kind is Kind.WRITE:
            size = len(log[at].data.rstrip(b"\0"))
            for kept in sorted({0, 1, size // 2, size - 1} & set(range(size))):
                for is_zero_filled in (False, True):
                    yield frozenset(), Torn(at, kept, is_zero_filled)
                yield frozenset(one for one in loose if one > at), Torn(at, kept, False)
    for cut in range(1, len(loose)):
        yield frozenset(loose[cut:]), None
        yield frozenset(loose[:cut]), None


def build(log: Sequence[Act], state: CrashState) -> MemoryDisk:
    """The disk as that crash leaves it; everything on it is durable."""
    disk = MemoryDisk()
    inodes: dict[int, _Inode] = {}
    for at, act in enumerate(log[: state.length]):
        inode = inodes.setdefault(act.inode, _Inode()) if act.inode else None
        if act.kind is Kind.MKDIR:
            disk.directories.add(act.path)
        if at in state.lost or inode is None:
            continue
        if act.kind is Kind.WRITE:
            data = act.data
            if state.torn is not None and state.torn.act == at:
                kept = state.torn.kept
                data = data[:kept] + (bytes(len(data) - kept) if state.torn.is_zero_filled else b"")
            content = inode.data
            if len(content) < act.offset:
                content.extend(bytes(act.offset - len(content)))
            content[act.offset : act.offset + len(data)] = data
        elif act.kind is Kind.TRUNCATE:
            del inode.data[act.offset :]
        elif act.kind is Kind.CREATE:
            disk.names[act.path] = inode
        elif act.kind is Kind.RENAME:
            disk.names.pop(act.path, None)
            disk.names[act.to] = inode
        elif act.kind is Kind.LINK:
            disk.names[act.to] = inode
        elif act.kind is Kind.UNLINK:
            disk.names.pop(act.path, None)
    disk.durable_names = dict(disk.names)
    for inode in inodes.values():
        inode.durable = bytes(inode.data)
    return disk
