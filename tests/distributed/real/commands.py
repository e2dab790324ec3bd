"""Commands over the real services, in the world of one test: what they wait for is a turn of the reactor, and their time is
that of the test's clock."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest

from mailismus.queue.providers.distributed.entry import DistributedProvider
from tests.distributed.commands import ReachedBy, SharedCommands
from tests.distributed.real.harness import RealQueueHarness

T = TypeVar("T")


class ReachedOwn(ReachedBy):
    """`IReached` of a test's own world in the services."""

    def __init__(self, harness: RealQueueHarness) -> None:
        super().__init__(harness)
        self._harness = harness
        self._connected = harness.connect()
        self.stores = self._connected.stores

    def close(self) -> None:
        self._harness.disconnect(self._connected)


class RealCommands(SharedCommands):
    """The command line of a host whose queue is a test's own."""

    def __init__(
        self, harness: RealQueueHarness, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        provider = DistributedProvider(reach=lambda services: ReachedOwn(harness))
        super().__init__(provider, path, monkeypatch, capsys)
