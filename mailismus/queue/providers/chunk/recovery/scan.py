"""The scan of a start: what is in the queue is read while the server works, in slices. Blocks, a call at a time.

    1  names in intd, todo, bounce
    2  envelopes in todo: which entries of other messages they have ended
    3  messages in todo, but for those that ended something
    4  messages that the file of due times does not know, or knows to be due, if they are few
    5  part by part: names in mess, info, local, remote; all other messages; what a crash left goes
    6  messages in todo that ended something, and what failed before

*Rules*: nothing is handed out before 2 has ended. An entry that an envelope has ended is marked done, durably, before its
message is handed out, and that envelope's own message comes last: by then all marks are. A number that was born in this run
is passed over: the inode of an old message is free only when this scan has handed that one out. S2 and S3 go where their
lock can be had, and only if they are S2 and S3 still while it is held. What fails is tried again at the end.
Of todo, what 1 lists is taken here. All else is adopted (`control.adoption`), after 3; so is what a living writer locks.

*Not here*: what is checked before the server works (`recovery.opening`).
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache

import attrs
from twisted.logger import Logger

from mailismus.disk.interface import IFile
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import DONE
from mailismus.queue.providers.chunk.format.states import ChunkState
from mailismus.queue.providers.chunk.format.version import (
    BOUNCE,
    INFO,
    INTD,
    LOCAL,
    MESS,
    REMOTE,
    SPLIT_DIRECTORIES,
    TODO,
    parse_number,
)
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.index.plain import plain_facts
from mailismus.queue.providers.chunk.index.resting import facts_of
from mailismus.queue.providers.chunk.index.rows import RestingFacts
from mailismus.queue.providers.chunk.recovery.abandoned import is_being_written, remove_unfinished
from mailismus.queue.providers.chunk.recovery.due_times import read_later
from mailismus.queue.providers.chunk.recovery.found import FoundChunk, find_chunk, find_state, names_of
from mailismus.queue.providers.chunk.recovery.problems import note_problems
from mailismus.queue.providers.chunk.write.barrier import Barrier
from mailismus.queue.providers.chunk.write.born import BornNumbers
from mailismus.queue.providers.chunk.write.cleaning import Cleaning, CleaningKind
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

SLICE = 200
"""Numbers of one call."""
SOON_S = 60.0
"""What is due within this time is read first."""
FEW, LEAST_FIRST = 8, 100
"""Of a part no more than one in so many is read first; so many may always be. All names of one are looked for then, each by
itself."""
_NONE: AbstractSet[str] = frozenset()
_PLAIN_LOCAL: AbstractSet[str] = frozenset((MESS, INFO, LOCAL))
_PLAIN_REMOTE: AbstractSet[str] = frozenset((MESS, INFO, REMOTE))
_PLAIN = {_PLAIN_LOCAL: LOCAL, _PLAIN_REMOTE: REMOTE}
"""Names of most messages in S5, and which of them has the recipients."""

_log = Logger()


@attrs.define
class ScanSlice:
    """What one call found."""

    facts: list[RestingFacts] = attrs.Factory(list)
    """Messages that rest."""
    spoiled: list[KnownChunk] = attrs.Factory(list)
    """Messages whose files are to be written anew."""
    cleanings: list[Cleaning] = attrs.Factory(list)
    left_in_todo: Collection[int] | None = None
    """All of todo has been looked at once, and these numbers are still to be taken. None: nothing new about that."""
    done: Collection[int] = ()
    """Numbers that are not looked at again."""
    error: OSError | None = None
    """Why nothing was found: it is tried again with a later call. None: it was found."""


class ChunkScan:
    """One scan. `born`: the numbers of this run."""

    def __init__(self, directories: ChunkDirectories, born: BornNumbers, seconds: Callable[[], float] = time.time) -> None:
        """`seconds`: UTC."""
        self._queue, self.born, self._seconds = directories, born, seconds
        self._ended: set[QueueId] = set()
        self._ended_ids: set[SpoolId] = set()
        """Messages of which envelopes ended something."""
        self._todo = array("Q")
        self._ending = array("Q")
        """Numbers of messages that ended something, in order: they come last."""
        self._again = array("Q")
        """Numbers that failed, in no order."""
        self._first: dict[int, array[int]] = {}
        """Of a part what was read before all others of it."""
        self._is_last = False
        self._slices = self._scan()

    def next(self) -> ScanSlice | None:
        """Read on. None: all is read."""
        return next(self._slices, None)

    # ------------------------------------------------------------------ what is read in turn

    def _scan(self) -> Iterator[ScanSlice]:
        unsplit: dict[str, array[int]] = {}
        for name in (INTD, TODO, BOUNCE):
            while True:
                try:
                    texts = self._queue.of(name).names()
                    unsplit[name] = array(
                        "Q", sorted(number for text in texts if (number := parse_number(text)) is not None)
                    )
                except OSError as error:
                    yield ScanSlice(error=error)
                else:
                    break
        self._todo = unsplit[TODO]
        for some in _slices(self._todo):
            yield self._read_ends(some)
        for some in _slices(self._todo):
            yield self._look([number for number in some if not _has(self._ending, number)])
        yield ScanSlice(left_in_todo={*self._ending, *(number for number in self._again if _has(self._todo, number))})
        yield from self._read_first()
        for part in range(self._queue.split):
            names = yield from self._names_of_part(part, unsplit)
            for some in _slices(sorted(names.keys() - self._first.pop(part, ()))):
                yield self._add({number: names[number] for number in some})
        self._is_last = True
        self._again.extend(self._ending)
        while self._again:
            again, self._again = self._again[:SLICE], self._again[SLICE:]
            others = len(self._again)
            found = self._look(again)
            yield attrs.evolve(found, done=set(again) - set(self._again[others:]))

    def _read_first(self) -> Iterator[ScanSlice]:
        """Read what may be due: all but what a file tells to be due later."""
        later = read_later(self._queue.disk, self._queue.root, self._queue.split, self._seconds() + SOON_S)
        for part, numbers_later in enumerate(later or ()):
            self._first[part] = array("Q", self._first_of(part, numbers_later))
            for some in _slices(self._first[part]):
                yield self._look(some)
            yield ScanSlice()  # names of one part are enough for a call

    def _first_of(self, part: int, numbers_later: Iterable[int]) -> Sequence[int]:
        """The numbers of a part that are read before all others of it, in order."""
        try:
            known = set(self._numbers(self._queue.all(MESS)[part].names(), part))
        except OSError:
            return ()  # they are read with the others
        first = sorted(known.difference(numbers_later))
        return first if len(first) <= max(LEAST_FIRST, len(known) // FEW) else ()  # with the others it takes less

    def _names_of_part(
        self, part: int, unsplit: dict[str, array[int]]
    ) -> Generator[ScanSlice, None, dict[int, AbstractSet[str]]]:
        """Return the names of all numbers of a part that have none in todo."""
        while True:
            found: dict[int, AbstractSet[str]] = {}
            try:
                texts = {name: set(self._queue.all(name)[part].names()) for name in SPLIT_DIRECTORIES}
                queued = texts[MESS] & texts[INFO]
                for names, one, other in ((_PLAIN_LOCAL, LOCAL, REMOTE), (_PLAIN_REMOTE, REMOTE, LOCAL)):
                    plain = queued & texts[one] - texts[other]
                    found.update(dict.fromkeys(self._numbers(plain, part), names))
                    for name in names:
                        texts[name] -= plain
                for name, left in texts.items():
                    for number in self._numbers(left, part):
                        found[number] = _with(found.get(number, _NONE), name)
            except OSError as error:
                yield ScanSlice(error=error)
                continue
            for name in (INTD, BOUNCE):
                for number in unsplit[name]:
                    if number % self._queue.split == part and not _has(self._todo, number):
                        found[number] = _with(found.get(number, _NONE), name)
            return found

    def _numbers(self, texts: Iterable[str], part: int) -> Iterator[int]:
        """The numbers in these names that belong to a part, but for those that have one in todo."""
        for text in texts:
            number = parse_number(text)
            if number is not None and number % self._queue.split == part and not _has(self._todo, number):
                yield number

    def _read_ends(self, numbers: Iterable[int]) -> ScanSlice:
        """Learn what envelopes have ended."""
        for number in numbers:
            if number not in self.born and (ended := find_chunk(self._queue, number, is_new=True).ended):
                self._end(ended)
                self._ending.append(number)
        return ScanSlice()

    def _end(self, ended: Collection[QueueId]) -> None:
        self._ended.update(ended)
        self._ended_ids.update(queue_id.spool_id for queue_id in ended)

    def _look(self, numbers: Iterable[int]) -> ScanSlice:
        """Numbers whose names are not known."""
        names: dict[int, AbstractSet[str]] = {}
        for number in numbers:
            if number in self.born or self._is_being_written(number):
                continue
            try:
                found = frozenset(names_of(self._queue, number))
                if TODO not in found or _has(self._todo, number):
                    names[number] = found
            except OSError as error:
                self._again.append(number)
                _log.error("The names of number {number} can't be read: {error}", number=number, error=error)
        return self._add(names)

    def _is_being_written(self, number: int) -> bool:
        """Whether a living writer is at work on it: to be asked before names are read. What ended something has none."""
        return not _has(self._ending, number) and is_being_written(self._queue, number)

    # ------------------------------------------------------------------ what it makes of them

    def _add(self, names: dict[int, AbstractSet[str]]) -> ScanSlice:
        found, barrier, failed = ScanSlice(), Barrier(self._queue), list[OSError]()
        try:
            for number, directories in names.items():
                if not directories or number in self.born:
                    continue
                facts = self._read_plain(number, directories)
                if facts is not None:
                    found.facts.append(facts)
                else:
                    self._add_one(find_state(self._queue, number, directories), found, barrier)
        except OSError as error:
            failed.append(error)
        try:
            barrier.sync()
        except OSError as error:
            failed.append(error)
        if not failed:
            return found
        self._again.extend(number for number in names if number not in self._again)
        return ScanSlice(error=failed[0])

    def _read_plain(self, number: int, directories: AbstractSet[str]) -> RestingFacts | None:
        """What a row keeps of a message of which nothing is to be told or done, in one read; None: look at it closely."""
        name = _PLAIN.get(directories)
        if name is None:
            return None
        try:
            facts = plain_facts(self._queue.of(name, number).read(str(number)), number)
        except OSError:
            return None
        return None if facts is None or facts.spool_id in self._ended_ids else facts

    def _add_one(self, one: FoundChunk, found: ScanSlice, barrier: Barrier) -> None:
        if not note_problems(self._queue, one):
            return  # it stays as it is: another start may read it
        if one.ended and not self._is_last:  # an envelope that could not be read before
            self._end(one.ended)
            self._again.append(one.number)
        elif one.state is None:
            _log.error("The files of number {number} are in no legal state; mailismus fsck tells more.", number=one.number)
        elif one.state in (ChunkState.S2, ChunkState.S3):
            remove_unfinished(self._queue, one.number, self.born)
        elif one.known is not None:
            self._mark_ended(one.known, barrier)
            if not one.problems:
                for name in one.leftovers:
                    self._unlink(name, one.number)
                    barrier.add_directory(name, one.number)
            self._hand_out(one.known, found)
        elif one.is_over:
            self._clean(one.number, found, is_preprocessed=one.state is ChunkState.S5)

    def _hand_out(self, known: KnownChunk, found: ScanSlice) -> None:
        if not known.entries:
            self._clean(known.number, found, is_preprocessed=known.is_preprocessed)
        elif known.is_spoiled:
            found.spoiled.append(known)
        else:
            entries = known.entries.values()
            found.facts.append(facts_of(known.message, known.number, entries, 0, is_new=not known.is_preprocessed))

    def _clean(self, number: int, found: ScanSlice, *, is_preprocessed: bool) -> None:
        found.cleanings.append(Cleaning(number, CleaningKind.OVER if is_preprocessed else CleaningKind.REFUSED))

    def _mark_ended(self, known: KnownChunk, barrier: Barrier) -> None:
        """Envelopes have ended these entries: say so in their own files."""
        opened: dict[str, IFile] = {}
        for number in list(known.entries):
            if QueueId(known.message.spool_id, number) not in self._ended:
                continue
            del known.entries[number]
            for name, offset in known.places.pop(number, ()):
                if name not in opened:
                    opened[name] = self._queue.of(name, known.number).open(str(known.number))
                    barrier.add(opened[name], is_last=True)
                opened[name].write_at(offset, (DONE,))

    def _unlink(self, name: str, number: int) -> None:
        try:
            self._queue.of(name, number).unlink(str(number))
        except FileNotFoundError:
            pass


def _slices(numbers: Collection[int]) -> Iterator[list[int]]:
    some: list[int] = []
    for number in numbers:
        some.append(number)
        if len(some) == SLICE:
            yield some
            some = []
    if some:
        yield some


def _has(numbers: array[int], number: int) -> bool:
    """Whether a number is among these, which are in order."""
    at = bisect_left(numbers, number)
    return at < len(numbers) and numbers[at] == number


@cache
def _with(names: AbstractSet[str], name: str) -> AbstractSet[str]:
    """These names and one more. All numbers with the same names share one set: a part may have tens of thousands."""
    return frozenset((*names, name))
