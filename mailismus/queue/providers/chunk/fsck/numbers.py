"""Names and states: files in the wrong part, numbers that are no inodes, numbers in no legal state.

*Rules*: what a start would see to is harmless. A message is never removed by a repair: what fits no state goes to
`corrupt/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from mailismus.disk.interface import NameKind
from mailismus.mail.ids import SpoolId
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.local.names import NameCheck
from mailismus.queue.fsck.local.problems import problem
from mailismus.queue.providers.chunk.format.states import ChunkState
from mailismus.queue.providers.chunk.format.version import (
    BOUNCE,
    IDS,
    INFO,
    INTD,
    LOCAL,
    MESS,
    PID,
    REMOTE,
    TODO,
    parse_number,
)
from mailismus.queue.providers.chunk.fsck.executor import LIMBO, ChunkRepairExecutor
from mailismus.queue.providers.chunk.fsck.kinds import ChunkFindingKind
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.recovery.found import FoundChunk, FoundNames, find_chunks
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.epochs import taken_epochs

ChunkProblem = Fault[ChunkRepairExecutor]
ChunkMend = Callable[[ChunkRepairExecutor], None]

_HOMES = (PID, INTD, TODO, BOUNCE, MESS, INFO, LOCAL, REMOTE)


def chunk_problem(
    kind: ChunkFindingKind, path: str, offset: int | None = None, mend: ChunkMend | None = None, /, **words: object
) -> ChunkProblem:
    """A problem of this kind; `words` fill its sentences."""
    return Fault(kind.finding(path, offset, words), mend)


def check_files(queue: ChunkDirectories, names: NameCheck) -> Iterator[ChunkProblem]:
    """Kind, owner and mode of each file; foreign names, and files in the wrong part."""
    begun = set(queue.of(PID).inode_numbers().values())
    for home in _HOMES:
        for part, directory in enumerate(queue.all(home)):
            for text in sorted(directory.names()):
                below = f"{home}/{part}" if len(queue.all(home)) > 1 else home
                path = f"{queue.root}/{below}/{text}"
                number = parse_number(text)
                if home == PID:
                    yield chunk_problem(ChunkFindingKind.BEGUN, path)
                elif number is None:
                    yield chunk_problem(ChunkFindingKind.FOREIGN, path)
                elif queue.of(home, number) is not directory:
                    wanted, right = number % queue.split, queue.path_of(home, number)
                    mend = partial(_move, path, right)
                    yield chunk_problem(ChunkFindingKind.MISPLACED, path, None, mend, part=part, wanted=wanted)
                else:
                    facts = directory.describe(text)
                    yield from names.check_facts(path, facts, NameKind.FILE)
                    others = facts.links - 1 - (number in begun)  # a writer that was killed left a name in pid
                    if home == MESS and facts.kind is NameKind.FILE and others > 0:
                        yield problem(ChunkFindingKind.LINKED_ELSEWHERE, path, count=others)


def _move(path: str, right: str, executor: ChunkRepairExecutor) -> None:
    executor.rename(path, right)


def check_numbers(queue: ChunkDirectories) -> Iterator[ChunkProblem]:
    """Numbers that are not those of inodes. Each message gets a number out of the way first: the one it shall have may be
    that of another message that was copied too."""
    wrong: list[tuple[int, int]] = []
    for directory in queue.all(MESS):
        for text, inode in directory.inode_numbers().items():
            number = parse_number(text)
            if number is not None and number != inode and queue.of(MESS, number) is directory:
                wrong.append((number, inode))
    for number, inode in sorted(wrong):
        path, away = queue.path_of(MESS, number), inode + LIMBO
        mend = partial(_renumber, queue, number, away) if number != away else None
        yield Fault(ChunkFindingKind.MISNUMBERED.finding(path, None, {"number": number, "inode": inode}), mend or _nothing)
    for _, inode in wrong:
        yield Fault(None, partial(_renumber, queue, inode + LIMBO, inode))


def _nothing(executor: ChunkRepairExecutor) -> None:
    """What is to be done comes later."""


def _renumber(queue: ChunkDirectories, old: int, new: int, executor: ChunkRepairExecutor) -> None:
    executor.renumber(queue, old, new)


def check_state(
    queue: ChunkDirectories, found: FoundChunk, directories: set[str], others: Mapping[SpoolId, int]
) -> Iterator[ChunkProblem]:
    """The state of a number, as far as its names tell it. `others`: the messages that have a content, and their numbers."""
    number, state = found.number, found.state
    if state is None:
        home = next(name for name in _HOMES if name in directories)
        path, known = queue.path_of(home, number), _known_without_content(queue, number, directories)
        words: dict[str, object] = {"names": ", ".join(sorted(directories)), "count": "an unknown number of"}
        if known is None:
            yield Fault(ChunkFindingKind.NO_STATE.finding(path, None, words), partial(_move_all, queue, number))
        elif known.message.spool_id in others:
            spool_id = known.message.spool_id
            words = {"spool_id": f"{spool_id:016X}", "other": others[spool_id]}
            yield Fault(ChunkFindingKind.MESSAGE_TWICE.finding(path, None, words), partial(_move_all, queue, number))
        else:
            words["count"] = len(known.entries)
            yield Fault(ChunkFindingKind.CONTENT_MISSING.finding(path, None, words), partial(_bounce_without, queue, known))
    elif state in (ChunkState.S2, ChunkState.S3):
        home = MESS if MESS in directories else INTD
        yield chunk_problem(ChunkFindingKind.UNFINISHED, queue.path_of(home, number), state=state.value)
    elif found.is_over:
        yield chunk_problem(ChunkFindingKind.OVER, queue.path_of(INFO if INFO in directories else TODO, number))
    else:
        for name in found.leftovers:
            if state is ChunkState.S4 and name == INTD:
                continue  # the envelope's first name stays until the message is preprocessed
            yield chunk_problem(ChunkFindingKind.LEFT_BEHIND, queue.path_of(name, number))


def _known_without_content(queue: ChunkDirectories, number: int, directories: set[str]) -> KnownChunk | None:
    """The message whose content alone is missing; None: other names are missing too, or nothing of it can be read."""
    if MESS in directories:
        return None
    found = next(find_chunks(queue, FoundNames({number: directories | {MESS}}, [])))
    return found.known if found.state in (ChunkState.S4, ChunkState.S5) else None


def _bounce_without(queue: ChunkDirectories, known: KnownChunk, executor: ChunkRepairExecutor) -> None:
    executor.bounce(queue, known, executor.stand_in(queue, known.number))


def bounce(queue: ChunkDirectories, known: KnownChunk) -> ChunkMend:
    """Make bounces of the entries of a message whose content is lost."""
    return partial(_bounce, queue, known)


def _bounce(queue: ChunkDirectories, known: KnownChunk, executor: ChunkRepairExecutor) -> None:
    executor.bounce(queue, known, known.number)


def _move_all(queue: ChunkDirectories, number: int, executor: ChunkRepairExecutor) -> None:
    executor.move_all(queue, number)


def move_all(queue: ChunkDirectories, number: int) -> ChunkMend:
    """Move all files of a number to quarantine."""
    return partial(_move_all, queue, number)


def check_epochs(queue: ChunkDirectories) -> Iterator[ChunkProblem]:
    """Whether an epoch was taken."""
    if not taken_epochs(queue.of(IDS)):
        yield chunk_problem(ChunkFindingKind.EPOCH_LOST, f"{queue.root}/{IDS}")
