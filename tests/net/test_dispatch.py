"""The shortened round tells readers as Twisted's own does, and survives one that fails."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReadDescriptor
from twisted.internet.selectreactor import SelectReactor
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.net.dispatch import shorten_dispatch
from tests.fakes.reactors import close_reactor


@implementer(IReadDescriptor)
class Reader:
    """Reads what comes; returns or raises what it is told to."""

    def __init__(self, answer: object = None) -> None:
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.answer = answer
        self.read: list[bytes] = []
        self.lost: list[object] = []

    def fileno(self) -> int:
        return self.near.fileno()

    def logPrefix(self) -> str:
        return "reader"

    def doRead(self) -> Any:
        self.read.append(os.read(self.near.fileno(), 100))
        if isinstance(self.answer, RuntimeError):
            raise self.answer
        return self.answer

    def connectionLost(self, reason: Failure) -> None:
        self.lost.append(reason.value)


@pytest.fixture
def reactor() -> Iterator[Any]:  # its methods are not annotated
    make: Any = EPollReactor
    made = make()
    assert shorten_dispatch(made)
    yield made
    close_reactor(made)


def test_a_reader_is_told_that_there_is_something_to_read(reactor: Any) -> None:
    readers = [Reader(), Reader()]
    for reader in readers:
        reactor.addReader(reader)
    readers[1].far.send(b"hello")
    reactor.iterate(0.5)
    assert [reader.read for reader in readers] == [[], [b"hello"]]


def test_a_reader_that_says_it_is_over_is_disconnected(reactor: Any) -> None:
    reader = Reader(ConnectionDone())
    reactor.addReader(reader)
    reader.far.send(b"x")
    reactor.iterate(0.5)
    assert [type(reason) for reason in reader.lost] == [ConnectionDone]
    assert reader not in reactor.getReaders()


def test_a_reader_that_fails_is_disconnected_and_hurts_no_other(reactor: Any) -> None:
    failing, other = Reader(RuntimeError("broken")), Reader()
    for reader in (failing, other):
        reactor.addReader(reader)
        reader.far.send(b"x")
    reactor.iterate(0.5)
    reactor.iterate(0)
    assert [str(reason) for reason in failing.lost] == ["broken"]
    assert other.read == [b"x"]
    assert other.lost == []


def test_a_peer_that_goes_is_noticed(reactor: Any) -> None:
    reader = Reader()
    reactor.addReader(reader)
    reader.far.close()
    reactor.iterate(0.5)
    assert reader.read == [b""] or reader.lost


def test_a_call_of_a_thread_ends_the_wait_for_events(reactor: Any) -> None:
    called: list[str] = []
    reactor.installWaker()
    thread = threading.Timer(0.05, reactor.callFromThread, (called.append, "call"))
    thread.start()
    reactor.doIteration(60)
    thread.join()
    reactor.runUntilCurrent()
    assert called == ["call"]


def test_a_call_that_came_before_the_wait_needs_no_wake_up(reactor: Any) -> None:
    called: list[str] = []
    reactor.installWaker()
    reactor.callFromThread(called.append, "call")
    assert select.select([reactor.waker.i], [], [], 0)[0] == []
    reactor.doIteration(60)
    reactor.runUntilCurrent()
    assert called == ["call"]


def test_calls_of_a_thread_at_any_moment_are_not_overlooked(reactor: Any) -> None:
    number = 2000
    called: list[int] = []
    reactor.installWaker()

    def act() -> None:
        for count in range(number):
            reactor.callFromThread(called.append, count)

    thread = threading.Thread(target=act)
    thread.start()
    while len(called) < number:
        reactor.doIteration(60)
        reactor.runUntilCurrent()
    thread.join()
    assert called == list(range(number))


def test_another_reactor_is_left_as_it_is() -> None:
    make: Any = SelectReactor
    other = make()
    assert not shorten_dispatch(other)
    assert not {"doIteration", "wakeUp"} & vars(other).keys()
