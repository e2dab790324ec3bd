"""A server over a clustered queue on real files."""

from __future__ import annotations

import os

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from mailismus.config.values.settings import RetrySettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool, Workers
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import Area, ICountingPlan, Message, Summary
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.clustered.assembly import build
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from tests.admin.samples import LATER, MX
from tests.admin.worlds import Serving, World
from tests.clustered.harness import queue_settings
from tests.fakes import managing

RETRY = RetrySettings(maxtime_s=259_200.0, maxtime_reports_s=86_400.0, delays_s=(9000.0,))


class Clustered(Serving):
    """A server over a clustered queue in the world's directories."""

    def __init__(self, world: World, disk: IDisk | None = None, *, maxclustersize: int = 256_000) -> None:
        self.world = world
        self._disk = disk or PosixDisk()
        self._settings = attrs.evolve(queue_settings(), maxclustersize=maxclustersize)
        self.counts = 0
        """How often the server counted."""
        super().__init__(world.socket_path, self._make)
        self.start()
        self.do(self.provider.open)

    def _make(self, clock: IReactorTime) -> Clustered:
        made = self._settings
        spool = attrs.evolve(made.spool, rootpath=str(self.world.path / "spool"))
        settings = attrs.evolve(made, rootpath=str(self.world.path / "queue"), spool=spool)
        threads = ThreadPool(self.reactor, "journal"), ThreadPool(self.reactor, "files")
        self._threads = threads
        disk = self._disk
        for directory in (settings.rootpath, spool.rootpath):
            os.chmod(directory, 0o700)
        for thread in threads:
            thread.start()
        self._opened = opened = open_queue(settings, disk, threads[1], clock, os.urandom)
        self.provider = build(settings, disk, opened, Workers(*threads), clock, clock.seconds)
        self.manager = QueueManager(self.provider, RETRY, clock, clock.seconds, MemoryMailLog())
        self.search, self.read, self.visit_all = self.manager.search, self.manager.read, self.manager.visit_all
        self.explanations = self.manager.explanations
        return self

    def summary(self) -> Deferred[Summary]:
        self.counts += 1
        return self.manager.summary()

    def counting_plan(self) -> ICountingPlan | None:
        return self.manager.counting_plan()

    def servers(self) -> None:
        return None

    def put(self, *recipients: bytes) -> SpoolId:
        def accept() -> Deferred[SpoolId]:
            draft = self.manager.draft()
            draft.write(b"x" * 1000)
            accepting = managing.accept(self.manager, draft, Envelope(b"a@b.example", recipients, b"192.0.2.7", False))
            return accepting.addCallback(lambda _: draft.spool_id)

        return self.do(accept)

    def settle(self, kind: OutcomeKind, entries: int = 1000) -> None:
        """So many entries that were not tried, or all, are tried: they wait, or are over, and that is durable."""

        def settle(messages: list[Message]) -> None:
            for one in messages:
                managing.settle(self.manager, one, [(entry, Outcome(kind, LATER, MX)) for entry in one.entries])

        self.do(lambda: self.manager.take(Area.INCOMING, entries).addCallback(settle))
        self.do(lambda: Deferred.fromCoroutine(self._until_sure()))

    async def _until_sure(self) -> None:
        while self.manager.in_doubt:
            await deferLater(self.reactor, 0.001)

    def rest(self) -> None:
        for _ in range(2):
            self.do(lambda: self.provider.checkpoints.run())

    def stop(self) -> None:
        self.do(self.provider.close)
        for thread in self._threads:
            thread.stop()
        super().stop()
        self._opened.close_files()
