"""Commands over the real services, in the world of one test: what they wait for is a turn of the reactor, and their time is
that of the test's clock."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.providers.distributed.entry import DistributedProvider
from mailismus.queue.providers.distributed.reaching import unreached
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from tests.distributed.commands import SharedCommands
from tests.distributed.real.harness import RealQueueHarness

T = TypeVar("T")


class ReachedOwn:
    """`IReached` of a test's own world in the services."""

    def __init__(self, harness: RealQueueHarness) -> None:
        self._harness = harness
        self._connected = harness.connect()
        self.stores = self._connected.stores
        self.timers: IReactorTime = harness.clock

    def now(self) -> float:
        return self._harness.now()

    def elapsed(self) -> float:
        return self._harness.now()

    def wait(self, call: Coroutine[Deferred[Any], Any, T]) -> T:
        try:
            return self._harness.wait(Deferred.fromCoroutine(call))
        except StoreFailure as failure:
            raise unreached(failure) from failure

    def close(self) -> None:
        self._harness.disconnect(self._connected)


class RealCommands(SharedCommands):
    """The command line of a host whose queue is a test's own."""

    def __init__(
        self, harness: RealQueueHarness, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        provider = DistributedProvider(reach=lambda services: ReachedOwn(harness))
        super().__init__(provider, path, monkeypatch, capsys)
