"""Open files: whether the connections that the settings allow fit the hard open-file limit of this process.

Each connection may need two: its socket, and the message file it writes or reads. A limit that was set is kept or
refused; one that is at its default, written or not, gives way, and so does 0, "no limit".

*Rules*: pure arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

PER_CONNECTION = 2
RESERVE = 256
"""Files for everything else: queue, logs, maildirs, look-ups, listeners, admin connections."""
LEAST_RESERVE = 32
"""The same where files are few: a server at rest has 23, each of its threads for files may need two more."""
PER_PART = 4
"""Directories that a queue of chunks keeps open for each part (`conf_split`)."""
LEAST = 16
"""Connections that a limit is never lowered beneath, where files are not few."""
LEAST_OF_FEW = 4
"""The same where they are."""


def reserve_of(limit: int) -> int:
    """The files that are not for connections, where there may be so many in all."""
    return min(RESERVE, max(LEAST_RESERVE, limit // 4))


@attrs.frozen
class Demand:
    """One limit of connections: what is wanted (0: no limit), and whether that may be lowered to fit."""

    wanted: int
    is_flexible: bool


@attrs.frozen
class TooMany:
    """They can't fit: demand number `index` is the largest that won't give way, `room` what it might be at most."""

    index: int | None
    room: int


def fit(demands: Sequence[Demand], hard_limit: int | None, held: int = 0) -> list[int] | TooMany:
    """The connections that each gets, in order, or why it can't be. `hard_limit` None: there is none. `held`: files that the
    queue keeps open beyond those of `reserve_of`."""
    if hard_limit is None:
        return [demand.wanted for demand in demands]
    room = max(0, hard_limit - held - reserve_of(hard_limit)) // PER_CONNECTION
    least = min(LEAST, max(LEAST_OF_FEW, room // 8))
    fixed = [index for index, demand in enumerate(demands) if not demand.is_flexible]
    flexible = [index for index, demand in enumerate(demands) if demand.is_flexible]
    left = room - sum(demands[index].wanted for index in fixed)
    if left < least * len(flexible):
        largest = max(fixed, key=lambda index: demands[index].wanted, default=None)
        spare = left + (demands[largest].wanted if largest is not None else 0) - least * len(flexible)
        return TooMany(largest, max(0, spare))
    given = [demand.wanted for demand in demands]
    bounded = [index for index in flexible if demands[index].wanted]
    unbounded = [index for index in flexible if not demands[index].wanted]
    need = sum(demands[index].wanted for index in bounded) + least * len(unbounded)
    if need > left:
        share = left - least * len(flexible)
        total = sum(demands[index].wanted for index in bounded)
        for index in bounded:
            given[index] = min(demands[index].wanted, least + share * demands[index].wanted // total)
        for index in unbounded:
            given[index] = least
    elif unbounded:
        spare = left - sum(demands[index].wanted for index in bounded)
        for index in unbounded:
            given[index] = spare // len(unbounded)
    return given
