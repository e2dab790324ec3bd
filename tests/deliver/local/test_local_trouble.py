"""Trouble of our own with connections is not held against the host."""

from __future__ import annotations

import errno
import os

import pytest
from twisted.internet.error import ConnectBindError
from twisted.internet.protocol import ClientFactory
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from tests.deliver.harness import Bench
from tests.fakes.network import Network


class Exhausted(Network):
    """A network to which no connection can be made, for a reason of ours, until `trouble` is None."""

    def __init__(self, clock: Clock, trouble: ConnectBindError | None) -> None:
        super().__init__(clock)
        self.trouble = trouble

    def connectTCP(self, host: str, port: int, factory: ClientFactory, timeout: float = 30) -> None:
        if self.trouble is None:
            super().connectTCP(host, port, factory, timeout)
            return
        self.attempts.append((host, port))
        reason = Failure(self.trouble)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self._clock.callLater(0, factory.clientConnectionFailed, None, reason)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_without_descriptors_mail_waits_and_no_host_is_dead(number: int) -> None:

    bench = Bench(has_relay=False)
    trouble = ConnectBindError(number, os.strerror(number))  # type: ignore[no-untyped-call]  # Twisted has no annotation here
    network = Exhausted(bench.clock, trouble)
    network.servers = bench.network.servers
    bench.network = bench.task.sessions.connector._tcp = network  # type: ignore[assignment]  # the fake is enough of a reactor
    bench.names.mx("b.example", (10, "mx1.b.example", "192.0.2.1"), (20, "mx2.b.example", "192.0.2.2"))
    sink = bench.sink()
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(3)
    assert bench.lines() == []
    assert 1 < len(network.attempts) < 10
    assert set(network.attempts) == {("192.0.2.1", 25)}
    network.trouble = None
    bench.run(3)
    assert sink.acknowledged() == [b"r@b.example"]
    assert bench.task.held == 0
