"""A host: the clock of one server's process, which may stand still or end while the world goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock


class HostClock(Clock):
    """`Clock` of a process on the world's clock. Frozen, it does what has come when it is thawed; killed, nothing more."""

    def __init__(self, world: Clock) -> None:
        super().__init__()
        self._world = world
        self._held: list[_HostCall] = []
        self.is_frozen = self.is_dead = False

    def seconds(self) -> float:
        return float(self._world.seconds())

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kw: Any) -> IDelayedCall:  # noqa: A002  # Twisted's
        call = _HostCall(lambda: callable(*args, **kw))
        call.begin(self._world.callLater(delay, self._run, call))
        return cast(IDelayedCall, call)

    def _run(self, call: _HostCall) -> None:
        if self.is_frozen:
            self._held.append(call)
        elif not self.is_dead:
            call.run()

    def freeze(self) -> None:
        """SIGSTOP."""
        self.is_frozen = True

    def thaw(self) -> None:
        """SIGCONT."""
        self.is_frozen = False
        held, self._held = self._held, []
        for call in held:
            self._world.callLater(0, self._run, call)

    def kill(self) -> None:
        """SIGKILL."""
        self.is_dead = True
        self._held.clear()


class _HostCall:
    """`IDelayedCall`. A process that stands still does not notice that its time has come, and may cancel it yet."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._of_world: IDelayedCall | None = None
        self._is_called = self._is_cancelled = False

    def begin(self, of_world: IDelayedCall) -> None:
        """The world will run it."""
        self._of_world = of_world

    def run(self) -> None:
        """Its time has come."""
        if not self._is_cancelled:
            self._is_called = True
            self._call()

    def reset(self, delay: float) -> None:
        """It comes so much later from now."""
        if self.active() and self._of_world is not None and self._of_world.active():
            self._of_world.reset(delay)

    def active(self) -> bool:
        """Whether it will come."""
        return not (self._is_called or self._is_cancelled)

    def cancel(self) -> None:
        """It does not come."""
        if self._is_called:
            raise AlreadyCalled
        if self._is_cancelled:
            raise AlreadyCancelled
        self._is_cancelled = True
        if self._of_world is not None and self._of_world.active():
            self._of_world.cancel()
