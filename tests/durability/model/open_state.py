"""What the worlds of all models share: a disk, a process that is there or not, and rules that are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from tests.durability.model.disk import Disk, power_cuts

M = TypeVar("M", bound=NamedTuple)
"""What a process knows."""


class OpenState(Generic[M]):
    """A disk and a process. `memory` must be there but for a start."""

    def __init__(self, disk: Iterable[Any], memory: M | None, without: Collection[str]) -> None:
        """`without`: names of rules that are left out."""
        self.disk = Disk(disk)
        self._memory = memory
        self._without = without

    @property
    def memory(self) -> M:
        """Of the process."""
        assert self._memory is not None
        return self._memory

    @property
    def is_down(self) -> bool:
        """No process is there."""
        return self._memory is None

    def remember(self, memory: M) -> None:
        """A process begins."""
        self._memory = memory

    def stop(self) -> None:
        """The process ends."""
        self._memory = None

    def know(self, **changes: Any) -> None:
        """The process knows something else now."""
        self._memory = self.memory._replace(**changes)

    def keeps(self, rule: str) -> bool:
        """This rule is not left out."""
        return rule not in self._without


def crashes(state: Any) -> Iterator[tuple[str, Any]]:
    """What a kill and a power cut make of a state, while there may be one of them."""
    left = state.left
    if state.memory is not None and left.kills:
        yield "kill -9", state._replace(memory=None, left=left._replace(kills=left.kills - 1))
    if state.memory is not None and left.powers:
        for disk in power_cuts(Disk(state.disk)):
            yield "POWER CUT", state._replace(disk=disk, memory=None, left=left._replace(powers=left.powers - 1))
