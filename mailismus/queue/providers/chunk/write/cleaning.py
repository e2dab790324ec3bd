"""Cleaning: the names that no state needs any more go, with the barriers of a batch. Blocks.

    a message is over         intd, local, remote, bounce -> barrier -> info -> barrier -> mess
    over, never preprocessed  intd -> barrier -> mess
    its commit failed         todo -> barrier -> intd -> barrier -> mess
    it is preprocessed        intd

*Rules*: the name in mess goes last, durably behind all others of its number: the number may come back with the next file. A
cleaning that is cut short is begun anew: names that are gone already are passed over.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from mailismus.queue.providers.chunk.format.version import BOUNCE, INFO, INTD, LOCAL, MESS, REMOTE, TODO
from mailismus.queue.providers.chunk.index.changes import ChangeKind, FileChange
from mailismus.queue.providers.chunk.write.barrier import Barrier
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories


class CleaningKind(enum.Enum):
    """Which names go: before the first barrier, before the second, and behind it."""

    OVER = ((INTD, LOCAL, REMOTE, BOUNCE), (INFO,), (MESS,))
    NEW_OVER = ((INTD,), (), (MESS,))
    """Its name in todo is durably gone, and nothing else was made."""
    REFUSED = ((TODO,), (INTD,), (MESS,))
    ENVELOPE = ((INTD,), (), ())
    """The message stays."""


@attrs.frozen(eq=False)
class Cleaning:
    """The names of one number that go."""

    number: int
    kind: CleaningKind


def cleanings_of(change: FileChange) -> list[Cleaning]:
    """Return what a change leaves to be cleaned, once it is durable."""
    number = change.known.number
    if change.is_over:
        is_new = change.kind is ChangeKind.END_NEW
        return [Cleaning(number, CleaningKind.NEW_OVER if is_new else CleaningKind.OVER)]
    return [Cleaning(number, CleaningKind.ENVELOPE)] if change.kind is ChangeKind.PREPROCESS else []


class Cleaner:
    """Does the three steps of cleanings; each returns those that go on to the next."""

    def __init__(self, directories: ChunkDirectories) -> None:
        self._queue = directories
        self._error: OSError | None = None

    def take_error(self) -> OSError | None:
        """The first error since the last call: the cleaning is to be begun anew."""
        error, self._error = self._error, None
        return error

    def begin(self, cleanings: Sequence[Cleaning], barrier: Barrier) -> list[Cleaning]:
        """Before the first barrier. What is left of an envelope is never tried again: the number may be another message's by
        then, and the name goes with all others of its message, or with a start."""
        done = []
        for one in cleanings:
            is_gone = self._unlink(one.number, one.kind.value[0], barrier)
            if is_gone or one.kind is CleaningKind.ENVELOPE:
                done.append(one)
        return done

    def go_on(self, cleanings: Sequence[Cleaning], barrier: Barrier) -> list[Cleaning]:
        """Between the two barriers."""
        return [one for one in cleanings if self._unlink(one.number, one.kind.value[1], barrier)]

    def end(self, cleanings: Sequence[Cleaning]) -> list[Cleaning]:
        """Behind the second barrier."""
        return [one for one in cleanings if self._unlink(one.number, one.kind.value[2], None)]

    def _unlink(self, number: int, names: Sequence[str], barrier: Barrier | None) -> bool:
        """Whether all these names are gone."""
        for name in names:
            try:
                self._queue.of(name, number).unlink(str(number))
            except FileNotFoundError:
                pass
            except OSError as error:
                self._error = self._error or error
                return False
            if barrier is not None:
                barrier.add_directory(name, number)
        return True
