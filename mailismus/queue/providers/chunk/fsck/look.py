"""One look at a stopped queue of chunks: all of its problems, step by step.

directories, mark, parts -> files -> numbers -> states -> lines -> contents

*Rules*: in a repair each problem is mended before the next one is looked for: so numbers are right before states are read.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from functools import partial

from mailismus.disk.interface import NameKind
from mailismus.errors import StartError
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.conversion import CONVERSION
from mailismus.queue.files.directories import LOCK
from mailismus.queue.files.mark import MARK, NEW_MARK
from mailismus.queue.files.writers import WRITERS
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.finding import Checked
from mailismus.queue.fsck.local.message_file import examine
from mailismus.queue.fsck.local.names import NameCheck
from mailismus.queue.fsck.local.state_files import check_state_files
from mailismus.queue.fsck.local.target import Checking, DirectoryLayout
from mailismus.queue.interface import Area
from mailismus.queue.providers.chunk.format.states import ChunkState
from mailismus.queue.providers.chunk.format.version import (
    DUE_FILE,
    MESS,
    NEW_DUE_FILE,
    PLAIN_DIRECTORIES,
    SPLIT_DIRECTORIES,
    SPLIT_FILE,
    TODO,
    TRIGGER,
)
from mailismus.queue.providers.chunk.fsck.executor import ChunkRepairExecutor
from mailismus.queue.providers.chunk.fsck.kinds import ChunkFindingKind
from mailismus.queue.providers.chunk.fsck.lines import check_info, check_lines
from mailismus.queue.providers.chunk.fsck.numbers import (
    ChunkProblem,
    bounce,
    check_epochs,
    check_files,
    check_numbers,
    check_state,
    chunk_problem,
    move_all,
)
from mailismus.queue.providers.chunk.index.changes import FILES
from mailismus.queue.providers.chunk.recovery.directories import directories_of, read_split
from mailismus.queue.providers.chunk.recovery.found import FoundChunk, FoundNames, find_chunks, find_names
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

LAYOUT = DirectoryLayout((*PLAIN_DIRECTORIES, *SPLIT_DIRECTORIES), (), ChunkFindingKind)
"""What the directory of a queue of chunks has."""

_OWN = (LOCK, SPLIT_FILE, WRITERS, DUE_FILE, NEW_DUE_FILE)
_FILES = frozenset((*_OWN, MARK, NEW_MARK, f"{SPLIT_FILE}.new", TRIGGER, "lost+found"))


class ChunkLook:
    """One check."""

    def __init__(self, checking: Checking) -> None:
        self._checking, self._disk, self._root = checking, checking.disk, checking.queue_path
        self._names = NameCheck(checking)
        self._known: dict[SpoolId, int] = {}
        self.checked = sums_of(0, 0)

    def problems(self) -> Iterator[ChunkProblem]:
        """All problems. Raises OSError where the check itself can't go on."""
        yield from self._check_root()
        split = yield from self._check_split()
        missing = [path for name in directories_of(split) if not self._disk.exists(path := os.path.join(self._root, name))]
        for path in missing:
            yield chunk_problem(ChunkFindingKind.DIRECTORY_MISSING, path)
        if missing or not self._disk.exists(os.path.join(self._root, "ids")):
            return
        for name in directories_of(split):
            yield from self._names.check(os.path.join(self._root, name), NameKind.DIRECTORY)
        queue = ChunkDirectories(self._disk, self._root, split)
        try:
            yield from check_files(queue, self._names)
            yield from check_numbers(queue)
            yield from check_epochs(queue)
            yield from self._check_messages(queue)
        finally:
            queue.close()

    def _check_root(self) -> Iterator[ChunkProblem]:
        checking, names = self._checking, self._names
        why = self._disk.refuse_unsafe(self._root) if checking.is_here else None
        if why is not None and self._disk.describe(self._root).mode & 0o077 == 0:
            yield chunk_problem(ChunkFindingKind.UNSAFE, self._root, why=why)
        else:
            yield from names.check(self._root, NameKind.DIRECTORY)
        for name in names.list(self._root):
            path = os.path.join(self._root, name)
            if name in _OWN:
                yield from names.check(path, NameKind.FILE)
            elif name == CONVERSION:
                yield from names.check(path, NameKind.DIRECTORY)
            elif name not in _FILES and name not in LAYOUT.directories:
                yield chunk_problem(ChunkFindingKind.FOREIGN, path)
        yield from names.check_mark()
        kept = len(names.list(checking.corrupt_path))
        if kept:
            yield chunk_problem(ChunkFindingKind.SET_ASIDE, checking.corrupt_path, count=kept)
        yield from check_state_files(checking, names)

    def _check_split(self) -> Generator[ChunkProblem, None, int]:
        """Return the number of parts."""
        path, count = os.path.join(self._root, SPLIT_FILE), 0
        while self._disk.exists(os.path.join(self._root, MESS, str(count))):
            count += 1
        try:
            split = read_split(self._disk, self._root)
            why = "it is not there"
        except StartError:
            split, why = None, "it is damaged"
        if split is None and count:
            mend = partial(_write_split, count)
            yield chunk_problem(ChunkFindingKind.SPLIT_DAMAGED, path, None, mend, why=why, count=count)
        return split or count

    def _check_messages(self, queue: ChunkDirectories) -> Iterator[ChunkProblem]:
        names = find_names(queue)
        messages = entries = 0
        for number, directories in sorted(names.directories.items(), key=_without_content_last):
            if TODO in directories:
                yield from check_lines(queue, TODO, number)
            for name in FILES if TODO not in directories else ():
                if name in directories:
                    yield from check_lines(queue, name, number)
            one = find_names_of(queue, number, directories)
            if one is None:
                continue
            yield from check_state(queue, one, directories, self._known)
            if one.state in (ChunkState.S4, ChunkState.S5) and one.known is not None:
                messages, entries = messages + 1, entries + len(one.known.entries)
                yield from self._check_message(queue, one)
        self.checked = sums_of(messages, entries)

    def _check_message(self, queue: ChunkDirectories, found: FoundChunk) -> Iterator[ChunkProblem]:
        assert found.known is not None
        message, number = found.known.message, found.number
        path = queue.path_of(MESS, number)
        other = self._known.setdefault(message.spool_id, number)
        if other != number:
            words: dict[str, object] = {"spool_id": f"{message.spool_id:016X}", "other": other}
            yield Fault(ChunkFindingKind.MESSAGE_TWICE.finding(path, None, words), move_all(queue, number))
            return
        if found.state is ChunkState.S5:
            yield from check_info(queue, found)
        examined = examine(self._disk, path, message.spool_id, message.stored_bytes, ChunkFindingKind)
        if examined.is_whole:
            return
        if examined.cure is not None:
            yield examined.cure
            return
        count = sum(entry.area is not Area.BOUNCES for entry in found.known.entries.values())
        if not count:
            yield chunk_problem(ChunkFindingKind.MESSAGE_OF_BOUNCE, path, why=examined.why)
        elif examined.is_unreadable:
            yield chunk_problem(ChunkFindingKind.MESSAGE_UNREADABLE, path, why=examined.why, count=count)
        else:
            mend = bounce(queue, found.known)
            yield chunk_problem(ChunkFindingKind.MESSAGE_LOST, path, None, mend, why=examined.why, count=count)


def _without_content_last(item: tuple[int, set[str]]) -> tuple[bool, int]:
    """A repair before this one may have given the message another number already."""
    return MESS not in item[1], item[0]


def find_names_of(queue: ChunkDirectories, number: int, directories: set[str]) -> FoundChunk | None:
    """One number, as its files are now; None: a repair has moved it away. Its recipients are read in no legal state too."""
    left = {name for name in directories if queue.disk.exists(queue.path_of(name, number))}
    if not left:
        return None
    return next(find_chunks(queue, FoundNames({number: left}, [])))


def _write_split(split: int, executor: ChunkRepairExecutor) -> None:
    executor.write_split(split)


def sums_of(messages: int, entries: int) -> tuple[Checked, ...]:
    """Numbers of checked things, in the words of this provider."""
    return (Checked("messages", messages, "message", "messages"), Checked("entries", entries, "live entry", "live entries"))
