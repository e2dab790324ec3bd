"""The explorer: a workload once without trouble, then once for each of its points, and what must hold behind each.

States are the same whose stores are the same as the server is killed, at the same time: one of them is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from tests.distributed.points import behind
from tests.distributed.points.ledger import Broken
from tests.distributed.points.point import Point, Seen, points_of
from tests.distributed.points.trial import Known, Trial
from tests.distributed.points.workloads import Workload

DAYS_EACH = 10
"""Of so many states one is looked at days later, beside those in which something is left to be removed."""


@attrs.define
class Tally:
    """What was looked at."""

    workloads: int = 0
    states: int = 0
    different: int = 0

    def __iadd__(self, other: Tally) -> Tally:
        self.workloads += other.workloads
        self.states += other.states
        self.different += other.different
        return self

    def __str__(self) -> str:
        return f"{self.workloads} workloads, {self.states} states, {self.different} different"


def calls_of(workload: Workload) -> list[Seen]:
    """The calls of a workload without trouble, in which all must hold too."""
    with Trial() as trial:
        operate = workload.begin(trial)
        trial.watch.arm(None)
        operate()
        trial.advance(workload.window_s)
        calls = list(trial.watch.calls)
        _end(trial, workload)
    return calls


def look_at(workload: Workload, point: Point, known: set[bytes]) -> bool:
    """Look at one state. Return whether it is none of these, which were looked at. Raises `Broken`."""
    try:
        with Trial(point, known) as trial:
            operate = workload.begin(trial)
            trial.watch.arm(point)
            operate()
            trial.advance(workload.window_s)
            trial.end_window()
            _end(trial, workload)
            if behind.is_anything_left(trial) or not point.number % DAYS_EACH:
                behind.check_days_later(trial)
    except Known:
        return False
    except Exception as error:
        raise Broken(f"{workload.name} {point}: {type(error).__name__}: {error}") from error
    return True


def _end(trial: Trial, workload: Workload) -> None:
    trial.drain()
    trial.ledger.check(workload.reports)
    behind.check_counts(trial)
    behind.check_dead(trial)
    behind.end(trial)
    behind.check_stores(trial)


def explore(workload: Workload, wanted: Callable[[str], bool] = lambda name: True) -> Tally:
    """Look at all states of a workload whose names are wanted. Raises `Broken` with the name of the first that breaks."""
    tally, known = Tally(workloads=1), set[bytes]()
    for point in points_of(calls_of(workload)):
        if wanted(f"{workload.name} {point}"):
            tally.states += 1
            tally.different += look_at(workload, point, known)
    return tally


def states_of(workload: Workload) -> Iterator[Point]:
    """All of them."""
    return points_of(calls_of(workload))
