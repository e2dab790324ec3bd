"""What a crash may leave of a story: all that a barrier covers, and of the rest whatever the file system likes.

Two readings of the file system: `POSIX` (a name is durable with a sync of its directory alone) and `EXT4` (a sync of a new
file makes its name durable too). `kill -9` leaves everything; a power cut may undo any act that no barrier covers, and
may leave a write torn: its end or its first block missing, or zero. `/q` and `/s` are two file systems.

Of all subsets of what is unsure these are looked at: all of it there, none, each act alone lost, each alone kept, the first
and the last so many; and each write torn, with and without what came behind it. Where more than `MANY` acts are unsure that
is done beside barriers alone, and elsewhere for the last act.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

import attrs

from tests.durability.crash.acts import BYTES, NAMES, Act, Kind, parent_of
from tests.durability.crash.tree import NOTHING, Content, Names, Tree, names_of

BLOCK = 4096
MANY = 40
"""Acts that are unsure at once."""
NONE: frozenset[int] = frozenset()


class FileSystem(enum.Enum):
    """How much a barrier covers."""

    POSIX = enum.auto()
    EXT4 = enum.auto()


@attrs.frozen
class Torn:
    """A write of which only the bytes from `start` to `end` arrived; the rest is as it was, or zero."""

    act: int
    start: int
    end: int
    is_zero_filled: bool


@attrs.frozen
class Crash:
    """After so many acts; these are lost, one is perhaps torn."""

    length: int
    lost: frozenset[int] = NONE
    torn: Torn | None = None


class Unsure:
    """The acts that a power cut may undo, as the story goes on."""

    def __init__(self, file_system: FileSystem) -> None:
        self._file_system = file_system
        self.acts: dict[int, Act] = {}
        self._missing: dict[int, set[str]] = {}
        """Directories that an act waits for."""
        self._stuck: set[int] = set()
        """Acts whose barrier failed: a later one does not cover them."""

    def add(self, at: int, act: Act) -> None:
        """The next act."""
        kind = act.kind
        if kind in BYTES:
            self.acts[at] = act
        elif kind in NAMES:
            self.acts[at] = act
            changed = (act.to,) if kind is Kind.LINK else (act.path, act.to)
            self._missing[at] = {parent_of(path) for path in changed if path}
        elif kind is Kind.SYNC:
            self._forget([n for n, one in self.acts.items() if one.inode == act.inode and self._is_covered(n, one)])
            if self._file_system is FileSystem.EXT4:
                self._forget(
                    [n for n, one in self.acts.items() if one.kind is Kind.MKDIR and act.path.startswith(one.path + "/")]
                )
        elif kind is Kind.SYNC_DIRECTORY:
            for missing in self._missing.values():
                missing.discard(act.path)
            self._forget([n for n, missing in self._missing.items() if not missing])
        elif kind is Kind.SYNC_FILE_SYSTEM:
            root = act.path[:2]
            self._forget([n for n, one in self.acts.items() if one.path[:2] == root and n not in self._stuck])
        elif kind is Kind.SYNC_FAILED:
            root = act.path[:2]
            self._stuck.update(
                n
                for n, one in self.acts.items()
                if one.kind in BYTES and (one.inode == act.inode or (not act.inode and one.path[:2] == root))
            )

    def _is_covered(self, at: int, act: Act) -> bool:
        if act.kind in BYTES:
            return at not in self._stuck
        return act.kind is Kind.CREATE and self._file_system is FileSystem.EXT4

    def _forget(self, covered: list[int]) -> None:
        for at in covered:
            del self.acts[at]
            self._missing.pop(at, None)


def losses(unsure: Mapping[int, Act], first: int = 0) -> Iterator[tuple[frozenset[int], Torn | None]]:
    """What may be missing of these: all, or some of those from act `first` on."""
    every = list(unsure)
    whole = frozenset(every)
    yield NONE, None
    if not every:
        return
    yield whole, None
    for at, act in unsure.items():
        if at < first:
            continue
        yield frozenset((at,)), None
        yield whole - {at}, None
        if act.kind is Kind.WRITE:
            behind = frozenset(one for one in every if one > at)
            for start, end in _pieces(act.data):
                if end:
                    yield NONE, Torn(at, start, end, is_zero_filled=False)
                    if behind:
                        yield behind, Torn(at, start, end, is_zero_filled=False)
                yield NONE, Torn(at, start, end, is_zero_filled=True)
                if behind:
                    yield behind, Torn(at, start, end, is_zero_filled=True)
    for cut in range(1, 0 if first else len(every)):
        yield frozenset(every[cut:]), None
        yield frozenset(every[:cut]), None


def _pieces(data: bytes) -> list[tuple[int, int]]:
    """The parts of a write that may arrive alone."""
    size = len(data.rstrip(b"\0"))
    pieces = [(0, end) for end in sorted({0, 1, size // 2, size - 1} & set(range(size)))]
    if size > BLOCK:
        pieces += [(0, BLOCK), (BLOCK, len(data))]
    return pieces


class Story:
    """Acts over a tree, and the trees that a crash may leave of them."""

    def __init__(self, acts: Sequence[Act], base: Tree = NOTHING) -> None:
        self.acts = acts
        self.base = base
        self._numbers = dict(base.numbers)
        """What the file system calls each inode."""
        self._bytes: dict[int, list[int]] = {}
        """Positions of the acts that change each inode's bytes."""
        self._names_before: list[int] = [0]
        """How many of the first n acts change names."""
        for at, act in enumerate(acts):
            if act.kind in BYTES:
                self._bytes.setdefault(act.inode, []).append(at)
            if act.kind is Kind.CREATE:
                self._numbers[act.inode] = act.offset
            self._names_before.append(self._names_before[-1] + (act.kind in NAMES))
        self._names: dict[tuple[int, frozenset[int]], Names] = {}
        self._contents: dict[tuple[int, int, frozenset[int], Torn | None], Content] = {}
        self._stand = 0, set(base.names.directories), dict(base.names.files)
        """Names after the first so many acts, none of them lost."""

    def crashes(self, first: int, file_system: FileSystem) -> Iterator[Crash]:
        """Every state worth a look, from a crash after `first` acts on. Some leave the same tree."""
        unsure = Unsure(file_system)
        for length in range(len(self.acts) + 1):
            if length:
                unsure.add(length - 1, self.acts[length - 1])
            if length >= first:
                self._stand_at(next((at for at, act in unsure.acts.items() if act.kind in NAMES), length))
                is_whole = len(unsure.acts) <= MANY or self._is_beside_barrier(length)
                for lost, torn in losses(unsure.acts, 0 if is_whole else length - 1):
                    yield Crash(length, lost, torn)

    def _is_beside_barrier(self, length: int) -> bool:
        """Whether it is the act before the crash, or the one that would have come."""
        return any(act.kind not in NAMES and act.kind not in BYTES for act in self.acts[max(0, length - 1) : length + 1])

    def all_lost(self, file_system: FileSystem = FileSystem.POSIX) -> Tree:
        """At the end, what no barrier covers lost."""
        unsure = Unsure(file_system)
        for at, act in enumerate(self.acts):
            unsure.add(at, act)
        self._stand_at(0)
        return self.tree(Crash(len(self.acts), frozenset(unsure.acts)))

    def tree(self, crash: Crash) -> Tree:
        """What it leaves."""
        lost_names = []
        lost_bytes: dict[int, list[int]] = {}
        for at in crash.lost:
            act = self.acts[at]
            if act.kind in BYTES:
                lost_bytes.setdefault(act.inode, []).append(at)
            else:
                lost_names.append(at)
        names = self._names_at(crash.length, frozenset(lost_names))
        torn = crash.torn
        torn_inode = self.acts[torn.act].inode if torn is not None else 0
        contents = {
            inode: self._content(
                inode, crash.length, frozenset(lost_bytes.get(inode, NONE)), torn if inode == torn_inode else None
            )
            for inode in set(names.files.values())
        }
        return Tree(names, contents, self._numbers)

    def _content(self, inode: int, length: int, lost: frozenset[int], torn: Torn | None) -> Content:
        positions = self._bytes.get(inode, [])
        count = sum(at < length for at in positions)
        key = (inode, count, lost, torn)
        found = self._contents.get(key)
        if found is not None:
            return found
        base = self.base.contents.get(inode)
        if not count and base is not None:
            made = base
        else:
            data = bytearray(base.data if base is not None else b"")
            for at in positions[:count]:
                if at not in lost:
                    _change(data, self.acts[at], torn if torn is not None and torn.act == at else None)
            made = Content(bytes(data))
        self._contents[key] = made
        return made

    def _names_at(self, length: int, lost: frozenset[int]) -> Names:
        key = (self._names_before[length], lost)
        found = self._names.get(key)
        if found is None:
            directories, files = self._apply(length, lost)
            while told := self._told_by_numbers(files, length, lost):
                lost -= told
                directories, files = self._apply(length, lost)
            found = self._names[key] = names_of(directories, _one_file_a_number(files, self._numbers))
        return found

    def _apply(self, length: int, lost: frozenset[int]) -> tuple[set[str], dict[str, int]]:
        start, directories, files = self._stand
        directories, files = set(directories), dict(files)
        for at in range(start, length):
            if at not in lost:
                _rename(directories, files, self.acts[at])
        return directories, files

    def _told_by_numbers(self, files: dict[str, int], length: int, lost: frozenset[int]) -> frozenset[int]:
        """The renames that are not lost after all: they freed the number of a file that is there."""
        gone = files.keys() - _one_file_a_number(files, self._numbers).keys()
        return frozenset(
            at for at in lost if gone and at < length and self.acts[at].kind is Kind.RENAME and self.acts[at].to in gone
        )

    def _stand_at(self, length: int) -> None:
        """Nothing before this act is ever lost from now on: names are made from here."""
        start, directories, files = self._stand
        if length < start:
            start, directories, files = 0, set(self.base.names.directories), dict(self.base.names.files)
        for at in range(start, length):
            _rename(directories, files, self.acts[at])
        self._stand = length, directories, files


def _one_file_a_number(files: dict[str, int], numbers: Mapping[int, int]) -> dict[str, int]:
    """A number is given out again with the file system's own record that the file before is gone: if the later file is
    there, the one before is not, and what took its place is (`_told_by_numbers`)."""
    latest: dict[int, int] = {}
    for inode in files.values():
        number = numbers.get(inode, 0)
        latest[number] = max(inode, latest.get(number, 0))
    if len(latest) == len(set(files.values())):
        return files
    return {path: inode for path, inode in files.items() if not numbers.get(inode) or latest[numbers[inode]] == inode}


def _change(data: bytearray, act: Act, torn: Torn | None) -> None:
    if act.kind is Kind.TRUNCATE:
        del data[act.offset :]
        return
    start, piece = act.offset, act.data
    if torn is not None:
        if torn.is_zero_filled:
            piece = bytes(torn.start) + piece[torn.start : torn.end] + bytes(len(piece) - torn.end)
        else:
            start, piece = start + torn.start, piece[torn.start : torn.end]
    if len(data) < start:
        data.extend(bytes(start - len(data)))
    data[start : start + len(piece)] = piece


def _rename(directories: set[str], files: dict[str, int], act: Act) -> None:
    """What an act does to names. The file that it is about may not have the name it had, where an act before is lost."""
    kind = act.kind
    if kind is Kind.MKDIR:
        directories.add(act.path)
    elif kind is Kind.RMDIR:
        directories.discard(act.path)
    elif kind is Kind.CREATE:
        files[act.path] = act.inode
    elif kind is Kind.LINK:
        files[act.to] = act.inode
    elif kind is Kind.UNLINK:
        if files.get(act.path) == act.inode:
            del files[act.path]
    elif kind is Kind.RENAME and not act.inode:
        _rename_directory(directories, files, act)
    elif kind is Kind.RENAME:
        if files.get(act.path) == act.inode:
            del files[act.path]
        else:
            others = [path for path, inode in files.items() if inode == act.inode]
            if len(others) == 1:
                del files[others[0]]
        files[act.to] = act.inode


def _rename_directory(directories: set[str], files: dict[str, int], act: Act) -> None:
    """A directory with all that is in it; nothing where an act before that made it is lost."""
    inside = act.path + "/"
    for path in [one for one in directories if one == act.path or one.startswith(inside)]:
        directories.discard(path)
        directories.add(act.to + path.removeprefix(act.path))
    for path in [one for one in files if one.startswith(inside)]:
        files[act.to + path.removeprefix(act.path)] = files.pop(path)
