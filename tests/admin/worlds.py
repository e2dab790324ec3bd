"""A place with a queue, a command line, and a server's admin task on a reactor of its own."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TextIO, TypeVar, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.selectreactor import SelectReactor

from mailismus.admin.client.stopped import StoppedAnswers
from mailismus.admin.commands.register import CommandTools, register
from mailismus.admin.protocol.wire import Request
from mailismus.admin.server.answers import LookableQueue
from mailismus.admin.server.task import AdminTask
from mailismus.config.values.settings import QueueSettings, RetrySettings, Settings
from mailismus.deliver.knowledge.host_records import HostRecord
from mailismus.deliver.why.stopped import StoppedExplanations
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import StartError
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import Area, Message
from mailismus.queue.manager import QueueManager
from mailismus.queue.provider import IPlanCounter, IProvider, IStoppedQueue, QueuePlace
from mailismus.queue.providers.clustered.entry import ClusteredProvider
from mailismus.queue.providers.clustered.read.planned_count import PlanCounter as ClusteredCounter
from mailismus.queue.providers.memory import MemoryQueue
from mailismus.queue.waiting import Explanations
from tests.admin.samples import LATER, MX, ListedQueue, bounced, deferred, incoming, message
from tests.fakes import managing
from tests.fakes.reactors import close_reactor

T = TypeVar("T")
RETRY = RetrySettings(maxtime_s=259_200.0, maxtime_reports_s=86_400.0, delays_s=(900.0,))


class _QueueSettings:
    def __init__(self, path: Path) -> None:
        self.rootpath = str(path / "queue")
        self.spool = argparse.Namespace(rootpath=str(path / "spool"))
        self.services = None


class _WorldsProvider(ClusteredProvider):
    """The provider of a world: it opens what the world says."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def open_stopped(self, place: QueuePlace) -> IStoppedQueue:
        assert place.spool_path is not None
        return self._world.open_offline(place.queue_path, place.spool_path)

    def new_counter(self) -> IPlanCounter:
        return self._world.new_counter()


class _HeldQueue:
    """A stopped queue that another process holds."""

    def ask(self, request: Request) -> Generator[dict[str, object], None, None]:
        raise StartError(75, "another process holds the queue")

    def close(self) -> None:
        """Nothing was opened."""


class World:
    """A place with a queue's directories and a command line; the providers of its program."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket_path = str(path / "run" / "admin.sock")
        self.offline = ListedQueue([message(1, deferred(1), incoming(2)), message(2, bounced()), message(3, deferred())])
        self.opened: list[tuple[str, str]] = []
        self.complaints: list[str] = []
        self.explained: list[str] = []
        self.records: list[HostRecord] = []
        """What the files tell of hosts."""
        self.now = 0.0
        """The time by which entries of the files are explained; 0: the real one."""
        self.counter: IPlanCounter | None = None
        """What counts by a plan, where it is not that of the clustered queue."""
        for name in ("queue", "spool"):
            (path / name).mkdir()

    def load(self, _: argparse.Namespace) -> Settings:
        queue = _QueueSettings(self.path)
        admin = argparse.Namespace(socket_path=self.socket_path)
        return cast(Settings, argparse.Namespace(queue=queue, admin=admin))

    def open_offline(self, queue_path: str, spool_path: str) -> IStoppedQueue:
        self.opened.append((queue_path, spool_path))
        return self.offline

    def new_counter(self) -> IPlanCounter:
        return self.counter or ClusteredCounter(PosixDisk(Access.READ_ONLY))

    @property
    def names(self) -> tuple[str, ...]:
        return ("clustered",)

    def named(self, name: str) -> IProvider:
        if name != "clustered":
            raise LookupError(name)
        return _WorldsProvider(self)

    def configured(self, settings: QueueSettings) -> IProvider:
        return _WorldsProvider(self)

    def found_in(self, queue_path: str) -> IProvider:
        return _WorldsProvider(self)

    def of_file(self, path: str) -> IProvider:
        return _WorldsProvider(self)

    def dump(self, path: str, out: TextIO) -> None:
        out.write(f"dump of {path}\n")

    def explain_stopped(self, queue_path: str, now: float) -> Explanations:
        self.explained.append(queue_path)
        return StoppedExplanations(self.records, self.now or now)

    def act_on_stopped(self, settings: Settings) -> StoppedAnswers:
        return _HeldQueue()

    def run(self, *words: str) -> int:
        parser = argparse.ArgumentParser()
        tools = CommandTools(
            self.load,
            self.load,
            lambda provider: (),
            self,
            self.dump,
            self.explain_stopped,
            self.act_on_stopped,
            self.complaints.append,
        )
        register(parser.add_subparsers(), tools)
        arguments = parser.parse_args(words)
        status = arguments.run(arguments)
        assert isinstance(status, int)
        return status

    def refusal(self, *words: str) -> tuple[int, str]:
        with pytest.raises(StartError) as raised:
            self.run(*words)
        return raised.value.status, raised.value.text


class Serving:
    """A server's admin task over any queue, on a reactor of its own in a thread."""

    def __init__(
        self,
        socket_path: str,
        make_queue: Callable[[IReactorTime], LookableQueue],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reactor = SelectReactor()
        self._clock = cast(IReactorTime, self.reactor)
        self.task = AdminTask(socket_path, make_queue(self._clock), self.reactor, self.reactor, self._clock, monotonic)
        self.task.bind()
        self._thread = threading.Thread(target=self.reactor.run, args=(False,))

    def start(self) -> None:
        started = threading.Event()
        self.reactor.callWhenRunning(self.task.start)
        self.reactor.callWhenRunning(started.set)
        self._thread.start()
        assert started.wait(60)

    def do(self, act: Callable[[], Deferred[T]]) -> T:
        """Have this done in the reactor, to its end."""
        done = threading.Event()
        results: list[T] = []

        def has_result(result: T) -> None:
            results.append(result)
            done.set()

        self.reactor.callFromThread(lambda: act().addCallback(has_result))
        assert done.wait(60)
        return results[0]

    def stop(self) -> None:
        def leave() -> None:
            self.task.stop()
            self.reactor.stop()

        self.reactor.callFromThread(leave)
        self._thread.join(60)
        assert not self._thread.is_alive()
        close_reactor(self.reactor)


class Running(Serving):
    """A server over a queue in memory."""

    def __init__(self, socket_path: str) -> None:
        super().__init__(socket_path, self._make_queue)

    def _make_queue(self, clock: IReactorTime) -> QueueManager:
        self.provider = MemoryQueue(clock)
        self.queue = QueueManager(self.provider, RETRY, clock, clock.seconds, MemoryMailLog())
        return self.queue

    def put(self, *recipients: bytes, content: bytes = b"x" * 1000, sender: bytes = b"a@b.example") -> SpoolId:
        def accept() -> Deferred[SpoolId]:
            draft = self.queue.draft()
            draft.write(content)
            accepting = managing.accept(self.queue, draft, Envelope(sender, tuple(recipients), b"192.0.2.7", True))
            return accepting.addCallback(lambda _: draft.spool_id)

        return self.do(accept)

    def defer(self) -> None:
        """Every entry has been tried and waits."""

        def settle(messages: list[Message]) -> None:
            for one in messages:
                managing.settle(
                    self.queue, one, [(entry, Outcome(OutcomeKind.DEFERRED, LATER, MX)) for entry in one.entries]
                )

        self.do(lambda: self.queue.take(Area.INCOMING, 10**6).addCallback(settle))
        self.do(lambda: self.provider.commit((), ()))
