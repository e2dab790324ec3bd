"""What a settlement makes of the files of a message: a plan, which a worker carries out (pure).

    S4, entries left    -> preprocess: info, local, remote, bounce are made, then todo goes
    S4, some are over   -> their lines in the envelope are marked done
    S4, no entry left   -> todo goes: the message is over
    S5, entries left    -> lines are appended, then the lines that they replace are marked done, as are those that are over
    S5, no entry left   -> the last lines are marked done: the message is over
    S5, spoiled or long -> the files are written anew and take the places of the old ones; empty ones if no entry is left.
                           If there are several, the first has the lines of all entries until the others are there

*Rules*: what is appended is durable before what it replaces is marked: the note in bounce before the mark of the recipient.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from mailismus.queue.interface import Area, Entry
from mailismus.queue.provider import IsLocal
from mailismus.queue.providers.chunk.format.line import format_chunk_lines
from mailismus.queue.providers.chunk.format.version import BOUNCE, LOCAL, REMOTE
from mailismus.queue.providers.chunk.index.known import KnownChunk, Place

LONG_BYTES = 16384
"""Bytes of lines that do not count, beyond which a file is written anew, if they are more than those that count."""

FILES = (LOCAL, REMOTE, BOUNCE)


class ChangeKind(enum.Enum):
    """What is done to the files of one message."""

    PREPROCESS = "made from the envelope"
    END_NEW = "gone before it was preprocessed"
    END_SOME_NEW = "lines of the envelope marked"
    APPEND = "lines appended and marked"
    REWRITE = "written anew"


@attrs.define(eq=False)
class FileChange:
    """One message's part of a batch."""

    known: KnownChunk
    kind: ChangeKind
    files: dict[str, bytes]
    """PREPROCESS, REWRITE: all of each file that has a line; APPEND: what is appended to each."""
    marks: tuple[Place, ...]
    """APPEND, END_SOME_NEW: lines that are done."""
    is_over: bool
    """No entry is left."""
    places: dict[int, tuple[Place, ...]]
    """Where the lines are when it is durable."""
    sizes: dict[str, int]
    """The sizes of the files then."""
    offsets: dict[str, int] = attrs.Factory(dict)
    """APPEND: where the appended bytes begin."""
    all_lines: bytes = b""
    """REWRITE of several files: what the first of them has until the others are there."""

    @property
    def only_ends(self) -> bool:
        """Whether it ends entries and does nothing else: then nothing has to be durable before it."""
        return self.kind in _ENDING and not self.known.is_spoiled


_ENDING = (ChangeKind.END_NEW, ChangeKind.END_SOME_NEW, ChangeKind.APPEND)


def file_of(entry: Entry, is_local: IsLocal) -> str:
    """The directory of an entry's line. Decided anew whenever the line is written."""
    if entry.area is Area.BOUNCES:
        return BOUNCE
    return LOCAL if is_local(entry.final_recipient) else REMOTE


def plan_change(known: KnownChunk, successors: Sequence[Entry], over: Sequence[int], is_local: IsLocal) -> FileChange:
    """The change that gives these recipients their successors and ends those of the numbers `over`. The entries of `known`
    are those before the change."""
    left = {number: entry for number, entry in known.entries.items() if number not in over}
    left.update((entry.number, entry) for entry in successors)
    if not known.is_preprocessed:
        if not left:
            return FileChange(known, ChangeKind.END_NEW, {}, (), True, {}, {})
        if not (successors or known.is_spoiled) and known.places.keys() >= set(over):
            return _end_some_new(known, over)
        return _whole(known, ChangeKind.PREPROCESS, list(left.values()), is_local)
    if known.is_spoiled or (left and _is_long(known)):
        if left:
            return _anew(known, list(left.values()), is_local)
        return FileChange(known, ChangeKind.REWRITE, dict.fromkeys(known.sizes, b""), (), True, {}, {})
    return _append(known, successors, over, is_local, is_over=not left)


def _end_some_new(known: KnownChunk, over: Sequence[int]) -> FileChange:
    places = dict(known.places)
    marks = tuple(place for number in over for place in places.pop(number))
    return FileChange(known, ChangeKind.END_SOME_NEW, {}, marks, False, places, {})


def preprocess(known: KnownChunk, is_local: IsLocal) -> FileChange:
    """The change that preprocesses a message as it is."""
    return _whole(known, ChangeKind.PREPROCESS, list(known.entries.values()), is_local)


def _is_long(known: KnownChunk) -> bool:
    """Whether more of its files is stale than counts."""
    size, live = sum(known.sizes.values()), sum(known.live_bytes.values())
    return size - live > max(live, LONG_BYTES)


def _whole(known: KnownChunk, kind: ChangeKind, entries: Sequence[Entry], is_local: IsLocal) -> FileChange:
    files: dict[str, list[bytes]] = {}
    sizes: dict[str, int] = {}
    places: dict[int, tuple[Place, ...]] = {}
    for entry, line in zip(entries, format_chunk_lines(known.message, entries), strict=True):
        file = file_of(entry, is_local)
        files.setdefault(file, []).append(line)
        places[entry.number] = ((file, sizes.get(file, 0)),)
        sizes[file] = sizes.get(file, 0) + len(line)
    return FileChange(known, kind, {file: b"".join(lines) for file, lines in files.items()}, (), False, places, sizes)


def _anew(known: KnownChunk, entries: Sequence[Entry], is_local: IsLocal) -> FileChange:
    change = _whole(known, ChangeKind.REWRITE, entries, is_local)
    if len(change.files) == 1:
        return change
    return attrs.evolve(change, all_lines=b"".join(change.files.values()))


def _append(
    known: KnownChunk,
    successors: Sequence[Entry],
    over: Sequence[int],
    is_local: IsLocal,
    *,
    is_over: bool,
) -> FileChange:
    files: dict[str, bytes] = {}
    sizes, places = dict(known.sizes), dict(known.places)
    offsets = {file: sizes.get(file, 0) for file in FILES}
    marks: list[Place] = []
    for entry, line in zip(successors, format_chunk_lines(known.message, successors), strict=True):
        file = file_of(entry, is_local)
        marks += [place for place in places.get(entry.number, ()) if place[0] != file]
        places[entry.number] = ((file, sizes.get(file, 0)),)
        files[file] = files.get(file, b"") + line
        sizes[file] = sizes.get(file, 0) + len(line)
    for number in over:
        marks += places.pop(number, ())
    return FileChange(known, ChangeKind.APPEND, files, tuple(marks), is_over, places, sizes, offsets)
