"""The delivering task on a reactor of its own, and sinks beside it, over real sockets on loopback."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

from twisted.internet.epollreactor import EPollReactor

from mailismus.config.values.settings import DeliverSettings, LmtpSettings, MessageStoreSettings, RetrySettings
from mailismus.deliver.real_context import RealDeliveryContext
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.schedule.destdb import Deaths
from mailismus.deliver.task import DeliverTask
from mailismus.mail.envelope import Envelope
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import IQueue
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.memory.provider import MemoryQueue
from tests.deliver.harness import CONTENT, DIRECTORY, Names, deliver_settings, relay
from tests.fakes.managing import accept
from tests.fakes.reactors import close_reactor
from tests.fakes.sink import Script, SinkFactory

LIMIT_S = 60.0


class DeliverServer:
    """A delivering task on a reactor, and sinks beside it."""

    def __init__(self, tmp_path: pathlib.Path, make_provider: Callable[[Any], IQueue] = MemoryQueue) -> None:
        """`make_provider`: of the reactor."""
        self.reactor: Any = EPollReactor()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self.maillog = MemoryMailLog()
        self.store = str(tmp_path)
        self.directory = DIRECTORY
        self.lmtp: LmtpSettings | None = None
        """The server of local mail, for `deliver_by`; None: it goes into maildirs."""
        self.ports: list[Any] = []
        self.task: DeliverTask
        self.locator = Locator(Names(), Names())
        self.world = RealDeliveryContext(self.reactor, self.reactor, self.reactor)
        self.provider = make_provider(self.reactor)
        self.queue = QueueManager(
            self.provider,
            RetrySettings(3600.0, 3600.0, (900.0,)),
            self.reactor,
            self.world.monotonic,
            self.maillog,
        )

    def sink(
        self, script: Script | None = None, interface: str = "127.0.0.1", port_number: int = 0
    ) -> tuple[SinkFactory, int]:
        factory = SinkFactory(script)
        port = self.reactor.listenTCP(port_number, factory, interface=interface)
        self.ports.append(port)
        return factory, port.getHost().port

    def deliver_to(self, *ports: int, **changes: Any) -> None:
        relays = [relay("127.0.0.1", port) for port in ports[:1]]
        relays += [relay("127.0.0.1", port, b"d%d.example" % number) for number, port in enumerate(ports[1:], 1)]
        self.deliver_by(deliver_settings(*relays, **changes))

    def deliver_by(self, settings: DeliverSettings) -> None:
        """Make the task with these settings."""
        self.task = DeliverTask(
            settings,
            MessageStoreSettings(self.store, "Maildir", self.lmtp),
            self.directory,
            b"mx.example",
            self.queue,
            self.maillog,
            self.world,
            self.locator,
            Deaths(),
        )
        self.reactor.callWhenRunning(self.task.start)

    def put(self, *recipients: bytes, content: bytes = CONTENT) -> None:
        draft = self.queue.draft()
        draft.write(content)
        accept(self.queue, draft, Envelope(b"s@a.example", recipients))

    def statuses(self) -> list[bytes]:
        return [line for line in self.maillog.lines if b"status=" in line]

    def run_until(self, is_over: Callable[[], object]) -> None:
        """Runs the reactor until this is true, stops the task, and ends."""
        timed_out: list[bool] = []

        def look() -> None:
            if is_over():
                guard.cancel()
                self.task.stop(self.world.monotonic() + 5).addCallback(
                    lambda _: self.reactor.callLater(0.02, self.reactor.stop)
                )
            else:
                self.reactor.callLater(0.005, look)

        def give_up() -> None:
            timed_out.append(True)
            self.reactor.stop()

        guard = self.reactor.callLater(LIMIT_S, give_up)
        self.reactor.callLater(0, look)
        self.reactor.run(installSignalHandlers=False)
        assert not timed_out, self.maillog.lines[-5:]

    def close(self) -> None:
        """Give the reactor's descriptors up."""
        close_reactor(self.reactor)
