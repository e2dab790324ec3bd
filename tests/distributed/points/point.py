"""Points: which call of a workload has which fate, and whether the server is killed there."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

import attrs


class At(enum.Enum):
    """What becomes of the call. A server that is killed there hears nothing of it."""

    NOT_DONE = "not-done"
    """A server that lives hears so at once."""
    DONE = "done"
    """A server that lives hears nothing, until its patience ends; so with all that follow."""
    NEVER = "never"
    LATE = "late"
    """It is done when another server has gone on."""
    LAST = "last"
    """It is done when nothing is left in the queue."""


@attrs.frozen
class Seen:
    """A call of a workload."""

    store: str
    call: str
    is_reading: bool

    def __str__(self) -> str:
        return f"{self.store}-{self.call}"


@attrs.frozen
class Point:
    """The call of this number, from 1 on, has this fate."""

    number: int
    call: str
    at: At
    is_kill: bool

    def __str__(self) -> str:
        return f"{self.number:03d}-{self.call}-{self.at.value}{'-killed' if self.is_kill else ''}"


END = "end"
"""In the place of a call: behind all of them."""
WALK = 4
"""So many reads of the same kind before a call and behind it: it is one of many."""
LIVING = (At.NOT_DONE, At.DONE, At.NEVER, At.LATE, At.LAST)
KILLED = (At.NOT_DONE, At.DONE, At.LATE, At.LAST)
"""A kill before a call and one before it is sent are the same; so is one before the answer and one behind it."""


def points_of(calls: Sequence[Seen]) -> Iterator[Point]:
    """All points of a workload with these calls; the last one is a kill behind all of them."""
    for number, seen in enumerate(calls, 1):
        if _is_one_of_many(calls, number - 1):
            continue
        living, killed = ((At.NOT_DONE,),) * 2 if seen.is_reading else (LIVING, KILLED)
        yield from (Point(number, str(seen), at, False) for at in living)
        yield from (Point(number, str(seen), at, True) for at in killed)
    yield Point(len(calls) + 1, END, At.NOT_DONE, True)


def _is_one_of_many(calls: Sequence[Seen], place: int) -> bool:
    """Whether a call is in the middle of many reads of the same kind: a walk over slices, or a look ahead."""
    around = calls[max(0, place - WALK) : place + WALK + 1]
    return len(around) == 2 * WALK + 1 and all(seen.is_reading and seen == calls[place] for seen in around)
