"""Sees the calls of a server, and gives one of them its fate."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

from mailismus.queue.providers.distributed.stores.failure import NotDone
from tests.distributed.models.fates import Fate
from tests.distributed.points.point import At, Point, Seen

T = TypeVar("T")
_LIVING = {At.NOT_DONE: Fate.NOT_DONE, At.DONE: Fate.UNANSWERED}
"""Of all others the call is never done, or not by it."""


class CallWatch:
    """`IWatch` of one server. `kill`: kills it."""

    def __init__(self, kill: Callable[[], None]) -> None:
        self._kill = kill
        self._point: Point | None = None
        self._is_armed = False
        self._in_flight: dict[int, Callable[[], object]] = {}
        self._numbers = itertools.count()
        self.calls: list[Seen] = []
        """Since it was armed."""
        self.late: Callable[[], object] | None = None
        """What is to be done late."""
        self.is_met = False
        """Whether the call of the point was made."""

    def arm(self, point: Point | None) -> None:
        """The workload begins; None: nothing happens to its calls."""
        self._point, self._is_armed = point, True

    def disarm(self) -> None:
        """What was not met does not happen any more."""
        self._point = None

    def meet(self, store: str, call: str, act: Callable[[], T], *, is_reading: bool) -> tuple[Fate | None, Callable[[], T]]:
        point = self._point
        if self._is_armed:
            self.calls.append(Seen(store, call, is_reading))
        if point is None or self.is_met or len(self.calls) != point.number:
            return None, act if is_reading else self._sent(act)
        self.is_met = True
        if point.call != str(self.calls[-1]):
            raise AssertionError(f"call {point.number} is {self.calls[-1]}, not {point.call}: the workload is not the same")
        if point.at in (At.LATE, At.LAST):
            self.late = act
        if point.is_kill:
            if point.at is not At.NOT_DONE:
                self._do_all()
            if point.at is At.DONE:
                do_unheard(act)
            self._kill()
            return Fate.NEVER, act
        return _LIVING.get(point.at, Fate.NEVER), act

    def _sent(self, act: Callable[[], T]) -> Callable[[], T]:
        """A call that was sent, and is not done yet: a kill does not recall it."""
        number = next(self._numbers)

        def do() -> T:
            self._in_flight.pop(number, None)
            return act()

        self._in_flight[number] = act
        return do

    def _do_all(self) -> None:
        """What was sent before arrives."""
        for number in sorted(self._in_flight):
            do_unheard(self._in_flight.pop(number))

    def do_late(self) -> None:
        """What is late arrives."""
        late, self.late = self.late, None
        if late is not None:
            do_unheard(late)


def do_unheard(act: Callable[[], object]) -> None:
    """Do it; nobody hears of a refusal."""
    try:
        act()
    except NotDone:
        pass
