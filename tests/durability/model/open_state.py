"""What the worlds of all models share: a disk, a process that is there or not, and rules that are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from tests.durability.model.disk import Disk

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
