"""The context of delivery: reactor, clocks, threads and chance, as it uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.interfaces import IReactorTCP, IReactorTime

from mailismus.deliver.schedule.choice import PickOne
from mailismus.disk.worker import IWorker


class DeliveryContext(Protocol):
    """Reactor and clocks of the task. `clock` tells UTC, `monotonic` never jumps."""

    @property
    def tcp(self) -> IReactorTCP: ...
    @property
    def clock(self) -> IReactorTime: ...
    @property
    def monotonic(self) -> Callable[[], float]: ...
    @property
    def local_workers(self) -> IWorker: ...
    @property
    def secret_workers(self) -> IWorker: ...
    @property
    def pick(self) -> PickOne: ...
    @property
    def chance(self) -> Callable[[], float]: ...
