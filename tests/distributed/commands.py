"""Commands over the stores of a harness: what a command reaches are these, models or services."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock

from mailismus.__main__ import main
from mailismus.config.read.document import parse
from mailismus.config.read.load import load_tree
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool
from mailismus.providers import PROVIDERS
from mailismus.queue.provider import IOpenedQueue, IsLocal
from mailismus.queue.providers.distributed.assembly import build
from mailismus.queue.providers.distributed.entry import DistributedProvider
from mailismus.queue.providers.distributed.opening import open_place
from mailismus.queue.providers.distributed.reaching import unreached
from mailismus.queue.providers.distributed.running import OpenedSharedQueue
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from mailismus.queue.reactor import QueueReactor
from tests.distributed.harness import ModelHarness
from tests.distributed.models.fates import Fate

T = TypeVar("T")
CONFIG = """<mailserver>
<application><dirpaths><root>.</root></dirpaths></application>
<mta>
<queue provider="distributed">
<rootpath>{root}/queue</rootpath>
<objects username="joe" passwordfile="{root}/secret"/>
</queue>
</mta>
</mailserver>"""


class WaitingHarness(Protocol):
    """A queue's harness, as far as commands wait by it."""

    @property
    def clock(self) -> Any:
        """Its time."""

    def now(self) -> float:
        """UTC seconds by it."""

    def wait(self, deferred: Deferred[T]) -> T:
        """Its result."""


class ReachedBy:
    """What of `IReached` a harness gives: time, and how a command waits."""

    def __init__(self, harness: WaitingHarness) -> None:
        self._by = harness
        self.timers: IReactorTime = harness.clock

    def now(self) -> float:
        return self._by.now()

    def elapsed(self) -> float:
        return self._by.now()

    def wait(self, call: Coroutine[Deferred[Any], Any, T]) -> T:
        try:
            return self._by.wait(Deferred.fromCoroutine(call))
        except StoreFailure as failure:
            raise unreached(failure) from failure


class ReachedModels(ReachedBy):
    """`IReached` of the models."""

    def __init__(self, harness: ModelHarness, planned: tuple[str, Fate] | None = None) -> None:
        """`planned`: a call of which the first has this fate."""
        super().__init__(harness)
        self._server = harness.world.server()
        self.stores = self._server.stores
        for fates in self._server.fates:
            fates.is_away = harness.are_away
        if planned is not None:
            call, fate = planned
            self._server.rows.fates.plan(Fate.DONE, call="write")  # its own beginning
            for one in (self._server.rows.fates, self._server.broker.fates):
                one.plan(fate, call=call)

    def close(self) -> None:
        self._server.broker.close()


class _LiveClock(Clock):
    """A clock whose calls a reactor makes, and that stands."""

    def __init__(self, reactor: QueueReactor, now: float) -> None:
        super().__init__()
        self.rightNow = now
        self.callLater = reactor.callLater  # type: ignore[method-assign]  # the reactor's own


class ModelProvider(DistributedProvider):
    """The provider, over the models of a harness."""

    def __init__(self, harness: ModelHarness, planned: Callable[[], tuple[str, Fate] | None]) -> None:
        super().__init__(reach=lambda services: ReachedModels(harness, planned()))
        self._harness = harness

    def open(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime, is_local: IsLocal) -> IOpenedQueue:
        harness = self._harness
        harness.world.move_to(_LiveClock(reactor, harness.now()))
        place = open_place(PosixDisk(), settings.rootpath, "mx", lambda bits: 1)
        terms = harness.terms(place.name)
        queue = build(harness.world.server().stores, cast(IReactorTime, reactor), terms)
        return OpenedSharedQueue(queue, ThreadPool(reactor, "none"), place, settings.rootpath)


class SharedCommands:
    """The command line of a host whose queue lies in the stores of a harness."""

    def __init__(
        self,
        provider: DistributedProvider,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """`provider`: reaches these stores."""
        self.provider, self.path, self._capsys = provider, path, capsys
        secret = path / "secret"
        secret.write_text("opensesame\n")
        secret.chmod(0o600)
        self._config = path / "mailismus.xml"
        self._config.write_text(CONFIG.format(root=path))
        module = ModuleType("tests.distributed.an_entry")
        module.PROVIDER = provider  # type: ignore[attr-defined]  # made here
        monkeypatch.setitem(sys.modules, module.__name__, module)
        self._providers = PROVIDERS.extended(distributed=module.__name__)

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command."""
        status = main(["--config", str(self._config), *words], self._providers)
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def settings(self) -> QueueSettings:
        """The settings of the queue."""
        text = self._config.read_bytes()
        return load_tree(parse(text, "f.xml"), str(self._config), "mx.example.net", None).settings.queue

    def objects(self, *words: str) -> list[Any]:
        """The objects that a command prints. It ends with 0."""
        status, out, err = self.run(*words, "--json")
        assert (status, err) == (os.EX_OK, "")
        return [json.loads(line) for line in out.splitlines()]

    def findings(self, *words: str) -> list[tuple[str, str | None]]:
        """Kinds of the findings of `fsck`, and what was done."""
        lines = [json.loads(line) for line in self.run("fsck", *words, "--json")[1].splitlines()]
        return [(line["kind"], line.get("done")) for line in lines if "kind" in line]


class ModelCommands(SharedCommands):
    """The stores are models."""

    def __init__(
        self,
        harness: ModelHarness,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.harness = harness
        self.fates: tuple[str, Fate] | None = None
        """A call of which the first has this fate."""
        super().__init__(ModelProvider(harness, lambda: self.fates), path, monkeypatch, capsys)
        monkeypatch.setattr("time.time", harness.now)

    def run(self, *words: str) -> tuple[int, str, str]:
        said = super().run(*words)
        self.harness.world.move_to(self.harness.clock)
        return said
