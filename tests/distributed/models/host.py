"""A host: the clock of one server's process, which may stand still or end while the world goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock


class HostClock(Clock):
    """`Clock` of a process on the world's clock. Frozen, it does what has come when it is thawed; killed, nothing more."""

    def __init__(self, world: Clock) -> None:
        super().__init__()
        self._world = world
        self._held: list[Callable[[], object]] = []
        self.is_frozen = self.is_dead = False

    def seconds(self) -> float:
        return float(self._world.seconds())

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kw: Any) -> IDelayedCall:  # noqa: A002  # Twisted's
        return self._world.callLater(delay, self._run, lambda: callable(*args, **kw))

    def _run(self, call: Callable[[], object]) -> None:
        if self.is_frozen:
            self._held.append(call)
        elif not self.is_dead:
            call()

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
