"""A disk in memory of which any single call can fail: once, always at that place, or everywhere from then on.

Every call of the door counts, `close` too. A write that fails may be torn. A sync that fails leaves the pages it was for
lost and yet readable: as on Linux they count as clean, and a later sync saves those alone that were written anew.
"""

from __future__ import annotations

import enum
import errno
import os
from collections.abc import Callable, Sequence

import attrs

from mailismus.disk.interface import IDirectory, IFile, IFileSystem, ILock, NameFacts, NameStanding, Space
from tests.fakes.disk import MemoryDisk, MemoryFile, _Inode

READS = frozenset({"exists", "list", "read", "size", "space", "check", "standing", "describe", "lock file"})
"""Acts that change nothing."""
OPENS = frozenset(
    {"open", "create", "lock", "list", "open directory", "open file system", "sync directory", "sync file system"}
)
"""Acts that need a descriptor."""
GROWS = frozenset({"mkdir", "create", "link", "rename", "write", "sync", "lock"})
"""Acts that may need space."""


PAGE = 4096


class Killed(BaseException):
    """The process is no more: nothing catches it."""


class Span(enum.Enum):
    """How long a fault lasts."""

    ONCE = "once"
    PLACE = "at that place for ever"
    DISK = "everywhere for ever"


FAILS = {
    errno.EIO: None,
    errno.EINTR: None,
    errno.ENOSPC: GROWS,
    errno.EDQUOT: GROWS,
    errno.EMFILE: OPENS,
    errno.EROFS: frozenset(
        {"mkdir", "rmdir", "create", "open", "link", "rename", "unlink", "lock", "write", "truncate", "sync"}
    ),
}
"""Which acts an error is an answer to; None: all of them."""


def may_fail_with(act: str, number: int) -> bool:
    """Whether a system would ever answer so."""
    acts = FAILS[number]
    return acts is None or act in acts


@attrs.frozen
class Fault:
    """From call number `call` on (from 1), calls fail with `errno`. `is_short`: a write leaves half of its bytes."""

    call: int
    errno: int
    span: Span = Span.ONCE
    is_short: bool = False


class FaultyDisk(MemoryDisk):
    """A `MemoryDisk` with a plan of what fails."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []
        """Acts and paths, in order."""
        self.stages: list[str] = []
        """What went on at each: a start, or the queue's run."""
        self.stage = "start"
        self.is_ill: Callable[[str, str], bool] | None = None
        """Calls that fail beside the plan, with EIO: for what is done about that, and may fail in its turn."""
        self.plan: Fault | None = None
        self.dies_at = 0
        """Number of the call at which the process is killed, before it is done; 0: it is not."""
        self.met: tuple[str, str] | None = None
        """The call that failed first."""
        self.failed = 0
        """Calls that failed."""
        self.open_files: set[FaultyFile] = set()
        self.distrusted: set[_Inode] = set()
        """Files (inodes) of which a sync failed since this process began."""
        self._lost: dict[_Inode, set[int]] = {}
        """Pages that count as clean and never reached the medium."""
        self.synced_again: list[str] = []
        """Paths of such files that were synced again as if well."""

    def meet(self, act: str, path: str) -> bool:
        """A call: raises what the plan says. True: a write that shall be torn, then fail."""
        if 0 < self.dies_at <= len(self.calls) + 1:
            raise Killed(f"{act} {path}")
        self.calls.append((act, path))
        self.stages.append(self.stage)
        if self.is_ill is not None and self.is_ill(act, path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        plan = self.plan
        if plan is None or len(self.calls) < plan.call or not may_fail_with(act, plan.errno):
            return False
        if self.met is None:
            self.met = (act, path)
        elif plan.span is Span.ONCE or (plan.span is Span.PLACE and (act, path) != self.met):
            return False
        self.failed += 1
        if act == "write" and plan.is_short:
            return True
        raise self.error(path)

    def error(self, path: str) -> OSError:
        assert self.plan is not None
        return OSError(self.plan.errno, os.strerror(self.plan.errno), path)

    def heal(self) -> None:
        """No more faults."""
        self.plan = None

    def kill(self) -> None:
        super().kill()
        self.dies_at = 0
        self.open_files.clear()
        self.distrusted.clear()

    def power_cut(self) -> None:
        super().power_cut()
        self.dies_at = 0
        self.open_files.clear()
        self.distrusted.clear()
        self._lost.clear()

    def lose(self, inode: _Inode) -> None:
        """A sync of it failed."""
        self.distrusted.add(inode)
        data, durable = inode.data, inode.durable
        pages = range(0, max(len(data), len(durable)), PAGE)
        lost = {at // PAGE for at in pages if data[at : at + PAGE] != durable[at : at + PAGE]}
        self._lost.setdefault(inode, set()).update(lost)

    def rewrite(self, inode: _Inode, offset: int, size: int) -> None:
        """These bytes are dirty again."""
        lost = self._lost.get(inode)
        if lost:
            lost.difference_update(range(offset // PAGE, (offset + size) // PAGE + 1))

    def save(self, inode: _Inode) -> None:
        """A sync of it went well."""
        data = bytes(inode.data)
        lost = self._lost.get(inode)
        if lost:
            whole = bytearray(data)
            for page in lost:
                start, end = page * PAGE, min((page + 1) * PAGE, len(data))
                if start < end:
                    whole[start:end] = inode.durable[start:end].ljust(end - start, b"\0")
            data = bytes(whole)
        inode.durable = data

    # the door

    def exists(self, path: str) -> bool:
        self.meet("exists", path)
        return super().exists(path)

    def make_directory(self, path: str) -> None:
        self.meet("mkdir", path)
        if MemoryDisk.exists(self, path):
            raise FileExistsError(errno.EEXIST, "exists", path)
        self.directories.add(path)

    def remove_directory(self, path: str) -> None:
        self.meet("rmdir", path)
        if path in self.directories and MemoryDisk.list_directory(self, path):
            raise OSError(errno.ENOTEMPTY, "not empty", path)
        self.directories.discard(path)

    def list_directory(self, path: str) -> list[str]:
        self.meet("list", path)
        return super().list_directory(path)

    def open_directory(self, path: str, *, may_be_link: bool = False) -> IDirectory:
        self.meet("open directory", path)
        return super().open_directory(path, may_be_link=may_be_link)

    def standing_of(self, inode: object, path: str) -> NameStanding:
        self.meet("standing", path)
        return super().standing_of(inode, path)

    def sync_directory(self, path: str) -> None:
        self.meet("sync directory", path)
        super().sync_directory(path)

    def sync_file_system(self, path: str) -> None:
        try:
            self.meet("sync file system", path)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.EINTR):  # it came to syncing
                for inode in self.names.values():
                    if inode.data != inode.durable:
                        self.lose(inode)
            raise
        self.durable_names = dict(self.names)
        for inode in self.names.values():
            self.save(inode)

    def open_file_system(self, paths: Sequence[str]) -> IFileSystem | None:
        self.meet("open file system", paths[0])
        return super().open_file_system(paths)

    def create(self, path: str) -> IFile:
        self.meet("create", path)
        if MemoryDisk.exists(self, path):
            raise FileExistsError(errno.EEXIST, "exists", path)
        if os.path.dirname(path) not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return FaultyFile(self, path, self.new_inode(path))

    def open(self, path: str) -> IFile:
        self.meet("open", path)
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return FaultyFile(self, path, self.names[path])

    def link(self, path: str, new_path: str) -> None:
        self.meet("link", new_path)
        if MemoryDisk.exists(self, new_path):
            raise FileExistsError(errno.EEXIST, "exists", new_path)
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        super().link(path, new_path)

    def rename(self, path: str, new_path: str) -> None:
        self.meet("rename", path)
        super().rename(path, new_path)

    def unlink(self, path: str) -> None:
        self.meet("unlink", path)
        super().unlink(path)

    def rename_new(self, path: str, new_path: str) -> None:
        self.meet("rename", new_path)
        super().rename_new(path, new_path)

    def lock(self, path: str, *, is_shared: bool = False) -> ILock | None:
        self.meet("lock", path)
        return super().lock(path, is_shared=is_shared)

    def space(self, path: str) -> Space:
        self.meet("space", path)
        return super().space(path)

    def refuse_unsafe(self, path: str) -> str | None:
        self.meet("check", path)
        return super().refuse_unsafe(path)


class FaultyFile(MemoryFile):
    """An open file of it."""

    def __init__(self, disk: FaultyDisk, path: str, inode: _Inode) -> None:
        super().__init__(disk, path, inode)
        self._faults = disk
        disk.open_files.add(self)

    @property
    def path(self) -> str:
        """As it was opened."""
        return self._path

    def write_at(self, offset: int, buffers: Sequence[bytes]) -> None:
        assert self.is_open, "written after it was closed"
        data = b"".join(buffers)
        is_torn = self._faults.meet("write", self._path)
        if is_torn:
            data = data[: len(data) // 2]
        super().write_at(offset, [data])
        self._faults.rewrite(self._inode, offset, len(data))
        if is_torn:
            raise self._faults.error(self._path)

    def read_at(self, offset: int, size_bytes: int) -> bytes:
        assert self.is_open, "read after it was closed"
        self._faults.meet("read", self._path)
        return super().read_at(offset, size_bytes)

    def size(self) -> int:
        self._faults.meet("size", self._path)
        return super().size()

    def describe(self) -> NameFacts:
        self._faults.meet("describe", self._path)
        return super().describe()

    def lock(self) -> bool:
        self._faults.meet("lock file", self._path)
        return super().lock()

    def truncate(self, size_bytes: int) -> None:
        self._faults.meet("truncate", self._path)
        super().truncate(size_bytes)
        self._faults.rewrite(self._inode, size_bytes, 0)

    def sync(self) -> None:
        assert self.is_open, "synced after it was closed"
        if self._inode in self._faults.distrusted:
            self._faults.synced_again.append(self._path)
        try:
            self._faults.meet("sync", self._path)
        except OSError:
            self._faults.lose(self._inode)
            raise
        self._faults.save(self._inode)

    def close(self) -> None:
        if self.is_open:
            self._faults.open_files.discard(self)
            super().close()
            self._faults.meet("close", self._path)
