"""The fate of each call of a store: what becomes of it, and what the caller hears."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered

T = TypeVar("T")
TIMEOUT_S = 10.0
NEED_ROOM = frozenset({"put", "publish", "tell", "write"})
"""Of the database what is compared and set needs none: so Cassandra has it."""


class Fate(enum.Enum):
    """What becomes of a call. What only reads has but the first two: of the others it fails as of the second."""

    DONE = "done"
    NOT_DONE = "not done"
    UNANSWERED = "done, unanswered"
    LATE = "done late, unanswered"
    NEVER = "never done, unanswered"


class IWatch(Protocol):
    """Sees each call of a server before it has its fate."""

    def meet(self, store: str, call: str, act: Callable[[], T], *, is_reading: bool) -> tuple[Fate | None, Callable[[], T]]:
        """A call is made. Return its fate (None: as it is planned), and what is done for it."""


class Fates:
    """The fates of one client's calls: those that were planned, in their order, then all are done. `watch`: sees them.

    What is late waits for `do_late`. Everything else happens in the next turns of the clock.
    """

    def __init__(self, clock: Clock, store: str, watch: IWatch | None = None) -> None:
        self._clock, self._store, self._watch = clock, store, watch
        self._planned: deque[tuple[str, Fate]] = deque()
        self._late: list[Callable[[], object]] = []
        self.calls: list[str] = []
        """Names of the calls so far."""
        self.is_away = False
        """Whether the store can't be reached: every call is not done."""
        self.troubled_until = 0.0
        """When the caller of the last call that was not done, or not answered, has heard of that."""
        self.is_full = False
        """Whether the store has no room: what puts something there is not done."""
        self.late_s = 0.0
        """So much later each call is done and answered."""
        self.is_silent = False
        """Whether the store is frozen: no call is done or answered."""

    def plan(self, *fates: Fate, call: str = "") -> None:
        """The next calls, or the next ones of that name, have these fates."""
        self._planned.extend((call, fate) for fate in fates)

    def forget(self) -> None:
        """What is planned and was not met yet does not happen: from now on all are done."""
        self._planned.clear()

    def carry_out(self, call: str, act: Callable[[], T], *, is_reading: bool = False) -> Deferred[T]:
        """Let a call have its fate. `act` may raise `NotDone`: the store refuses."""
        fate = self._next(call)
        if self._watch is not None:
            seen, act = self._watch.meet(self._store, call, act, is_reading=is_reading)
            fate = fate if seen is None else seen
        self.calls.append(call)
        done: Deferred[T] = Deferred()
        if self.is_silent:
            failure = NotDone if is_reading else Unanswered
            self._clock.callLater(TIMEOUT_S, done.errback, failure(self._store, "no answer"))
            return done
        if self.is_full and call in NEED_ROOM:
            self._clock.callLater(0.0, done.errback, NotDone(self._store, "no room", is_full=True))
            return done
        if fate is not Fate.DONE:
            unheard_s = 0.0 if fate is Fate.NOT_DONE or is_reading else TIMEOUT_S
            self.troubled_until = max(self.troubled_until, self._clock.seconds() + unheard_s)
        if fate is Fate.NOT_DONE or (is_reading and fate is not Fate.DONE):
            self._clock.callLater(0.0, done.errback, NotDone(self._store, "it refused"))
        elif fate is Fate.DONE:
            self._clock.callLater(self.late_s, self._do, act, done)
        else:
            if fate is Fate.UNANSWERED:
                self._clock.callLater(0.0, _do_unheard, act)
            elif fate is Fate.LATE:
                self._late.append(act)
            self._clock.callLater(TIMEOUT_S, done.errback, Unanswered(self._store, "no answer"))
        return done

    def do_late(self) -> None:
        """What was late arrives now."""
        late, self._late = self._late, []
        for act in late:
            _do_unheard(act)

    def _next(self, call: str) -> Fate:
        if self.is_away:
            return Fate.NOT_DONE
        for place, (name, fate) in enumerate(self._planned):
            if name in ("", call):
                del self._planned[place]
                return fate
        return Fate.DONE

    @staticmethod
    def _do(act: Callable[[], T], done: Deferred[T]) -> None:
        try:
            result = act()
        except NotDone as error:
            done.errback(error)
        else:
            done.callback(result)


def _do_unheard(act: Callable[[], object]) -> None:
    try:
        act()
    except NotDone:
        pass  # nobody hears of the refusal
