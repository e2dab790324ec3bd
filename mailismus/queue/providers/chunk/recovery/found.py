"""What the names and files of a queue say: messages, numbers that are over, what is left of a crash, what is damaged.
Blocks.

*Rules*: only names and files are read, nothing is changed, and nothing is taken for granted: a file that can't be read or
does not check is told as a problem, and the message stays as it is. A number is read by its state alone (`format.states`).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import attrs

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.chunk.format.files import LineAt, ReadLines, read_lines
from mailismus.queue.providers.chunk.format.states import ChunkState, state_of
from mailismus.queue.providers.chunk.format.version import (
    BOUNCE,
    INFO,
    INTD,
    LOCAL,
    MESS,
    REMOTE,
    TODO,
    parse_number,
)
from mailismus.queue.providers.chunk.index.changes import FILES
from mailismus.queue.providers.chunk.index.known import KnownChunk, Place
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

_NAMED = (TODO, INTD, MESS, INFO, LOCAL, REMOTE, BOUNCE)
"""In this order: a living writer makes the name in mess first, then the one in intd, then the one in todo."""


@attrs.frozen
class ChunkProblem:
    """What is wrong with a file, or with the names of a number."""

    path: str
    text: str
    bad: bytes = b""
    """Bytes that do not check, which nothing keeps once the file is written anew."""
    is_unreadable: bool = False
    """What the file says is not known: the message must be left as it is."""


@attrs.define
class FoundNames:
    """The directories in which each number has a name."""

    directories: dict[int, set[str]]
    foreign: list[str]
    """Paths that are no names of the queue."""


def find_names(queue: ChunkDirectories) -> FoundNames:
    """Read all names. Raises OSError."""
    found: dict[int, set[str]] = {}
    foreign: list[str] = []
    for name in _NAMED:
        for part, directory in enumerate(queue.all(name)):
            for text in directory.names():
                number = parse_number(text)
                if number is None or queue.of(name, number) is not directory:
                    foreign.append(f"{queue.root}/{name}/{part}/{text}" if len(queue.all(name)) > 1 else f"{name}/{text}")
                    continue
                found.setdefault(number, set()).add(name)
    return FoundNames(found, foreign)


@attrs.define
class FoundChunk:
    """One number. `state` None: no legal one."""

    number: int
    state: ChunkState | None
    known: KnownChunk | None
    """The message, if it has an entry left."""
    ended: tuple[QueueId, ...] = ()
    """S4: entries of other messages that its commit ended."""
    leftovers: tuple[str, ...] = ()
    """S4, S5: directories with a name of it that says nothing."""
    problems: list[ChunkProblem] = attrs.Factory(list)

    @property
    def is_unreadable(self) -> bool:
        """Whether a file of it can't be read."""
        return any(problem.is_unreadable for problem in self.problems)

    @property
    def is_over(self) -> bool:
        """Whether it is in the queue, and nothing of it is left to be done."""
        is_queued = self.state in (ChunkState.S4, ChunkState.S5)
        return is_queued and self.known is None and not self.problems


def find_chunk(queue: ChunkDirectories, number: int, *, is_new: bool) -> FoundChunk:
    """One number that is known to be in S4 (`is_new`) or in S5. Never raises OSError."""
    if is_new:
        return _new_message(queue, number, {MESS, TODO})
    return _preprocessed(queue, number, {MESS, INFO, *(name for name in FILES if _may_be_there(queue, name, number))})


def names_of(queue: ChunkDirectories, number: int) -> set[str]:
    """The directories in which a number has a name. Raises OSError."""
    found = set()
    for name in _NAMED:
        try:
            queue.of(name, number).describe(str(number))
        except FileNotFoundError:
            continue
        found.add(name)
    return found


def _may_be_there(queue: ChunkDirectories, name: str, number: int) -> bool:
    try:
        queue.of(name, number).describe(str(number))
    except FileNotFoundError:
        return False
    except OSError:
        pass  # a read of it will tell
    return True


def find_state(queue: ChunkDirectories, number: int, directories: AbstractSet[str]) -> FoundChunk:
    """One number that has a name in these directories. Never raises OSError."""
    state = state_of(directories)
    if state is ChunkState.S4:
        return _new_message(queue, number, directories)
    if state is ChunkState.S5:
        return _preprocessed(queue, number, directories)
    return FoundChunk(number, state, None)


def find_chunks(queue: ChunkDirectories, names: FoundNames) -> Iterator[FoundChunk]:
    """All numbers, one by one, in ascending order. Raises OSError."""
    for number, directories in sorted(names.directories.items()):
        yield find_state(queue, number, directories)


def _new_message(queue: ChunkDirectories, number: int, directories: AbstractSet[str]) -> FoundChunk:
    read, problems = _read(queue, TODO, number)
    found = FoundChunk(number, ChunkState.S4, None, read.ended, tuple(sorted(directories - {MESS, TODO})), problems)
    live = [one for one in read.lines if not one.is_done]
    if live:
        known = found.known = _known(live[0].message, number, {one.entry.number: one.entry for one in live})
        known.keep_envelope({one.entry.number: ((TODO, one.offset),) for one in live})
        if problems:
            known.spoil()
    return found


def _preprocessed(queue: ChunkDirectories, number: int, directories: AbstractSet[str]) -> FoundChunk:
    found = FoundChunk(number, ChunkState.S5, None, leftovers=(INTD,) if INTD in directories else ())
    lines: dict[int, list[tuple[str, LineAt]]] = {}
    sizes: dict[str, int] = {}
    is_spoiled = False
    for name in FILES:
        if name not in directories:
            continue
        read, problems = _read(queue, name, number)
        found.problems += problems
        is_spoiled = is_spoiled or bool(read.torn_bytes or problems)
        last = {one.entry.number: one for one in read.lines}
        for at, one in last.items():
            lines.setdefault(at, []).append((name, one))
        sizes[name] = read.size_bytes
    entries: dict[int, Entry] = {}
    places: dict[int, tuple[Place, ...]] = {}
    message: Message | None = None
    live_bytes: dict[str, int] = {}
    for at, candidates in sorted(lines.items()):
        live = [(name, one) for name, one in candidates if not one.is_done]
        if not live:
            continue
        in_file, newest = max(live, key=_age)
        live_bytes[in_file] = live_bytes.get(in_file, 0) + newest.size_bytes
        entries[at], message = newest.entry, newest.message
        places[at] = tuple((name, one.offset) for name, one in live)
    if message is not None:
        known = found.known = _known(message, number, entries)
        known.keep_files(places, sizes, live_bytes)
        if is_spoiled:
            known.spoil()
    return found


def _age(candidate: tuple[str, LineAt]) -> tuple[int, bool]:
    """Of two lines of a recipient in two files, of which a crash kept both, the later one: a note is later than the line
    that it stands for."""
    entry = candidate[1].entry
    return entry.attempts, entry.area is Area.BOUNCES


def _known(message: Message, number: int, entries: dict[int, Entry]) -> KnownChunk:
    known = KnownChunk(message, number)
    known.entries = entries
    return known


def _read(queue: ChunkDirectories, name: str, number: int) -> tuple[ReadLines, list[ChunkProblem]]:
    path = queue.path_of(name, number)
    try:
        try:
            data = queue.of(name, number).read(str(number))
        except OSError:
            data = queue.of(name, number).read(str(number))  # one disk error is no reason to leave a message
    except OSError as error:
        text = f"can't be read: {error.strerror or error}"
        return ReadLines(), [ChunkProblem(path, text, is_unreadable=True)]
    read = read_lines(data)
    problems = [
        ChunkProblem(path, f"the line at {offset} does not check", data[offset : offset + size]) for offset, size in read.bad
    ]
    if name == TODO and (read.torn_bytes or not read.lines):
        problems.append(ChunkProblem(path, "the envelope is not whole"))
    return read, problems
