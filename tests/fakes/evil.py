"""Acts of a sink that means harm, for its script (`tests.fakes.sink`), and sinks on real sockets in a thread of their own.

An act is a function of the sink; each is for a connection of Twisted's, on a reactor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from twisted.internet.epollreactor import EPollReactor
from twisted.internet.interfaces import IPullProducer
from zope.interface import implementer

from tests.fakes.reactors import close_reactor
from tests.fakes.sink import Action, Ahead, Script, Sink, SinkFactory

PIECE = 65536
Doing = Callable[[Sink], Action]


@implementer(IPullProducer)
class _Flood:
    def __init__(self, transport: Any, piece: bytes) -> None:
        self.transport, self.piece = transport, piece

    def resumeProducing(self) -> None:
        self.transport.write(self.piece)

    def stopProducing(self) -> None: ...


def flood(line: bytes) -> Doing:
    """Says this without an end, as fast as it is read."""

    def act(sink: Sink) -> Action:
        transport: Any = sink.transport_of()
        transport.registerProducer(_Flood(transport, line * (PIECE // len(line) + 1)), False)
        return b""

    return act


def drip(first: bytes, more: bytes, every_s: float) -> Doing:
    """Says the first, and then a little more now and again."""

    def act(sink: Sink) -> Action:
        transport: Any = sink.transport_of()

        def say_more() -> None:
            if not sink.is_closed:
                transport.write(more)
                transport.reactor.callLater(every_s, say_more)

        transport.reactor.callLater(every_s, say_more)
        return first

    return act


def late(reply: bytes, after_s: float) -> Doing:
    """Says it after so long."""

    def act(sink: Sink) -> Action:
        transport: Any = sink.transport_of()
        transport.reactor.callLater(after_s, transport.write, reply)
        return b""

    return act


def deaf(reply: bytes) -> Doing:
    """Says this, and never reads again."""

    def act(sink: Sink) -> Action:
        transport: Any = sink.transport_of()
        transport.pauseProducing()
        return reply

    return act


def leave_after(reply: bytes, size_bytes: int, word: bytes = b"") -> Doing:
    """Says this, and goes with another word when so many bytes have come."""

    def act(sink: Sink) -> Action:
        sink.leave_after, sink.last_word = size_bytes, word
        return reply

    return act


class Sinks:
    """Sinks on free ports of this host; a reactor runs in a thread from `with` to its end."""

    def __init__(self) -> None:
        self._reactor: Any = EPollReactor()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self._thread = threading.Thread(target=lambda: self._reactor.run(installSignalHandlers=False))
        self.factories: dict[int, SinkFactory] = {}

    def add(self, script: Script | None = None, ahead: Ahead = Ahead.TAKE) -> int:
        """Before `with`: one more sink. Gives its port."""
        factory = SinkFactory(script, ahead)
        port = self._reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.factories[port.getHost().port] = factory
        return int(port.getHost().port)

    def __enter__(self) -> Sinks:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None) -> None:
        self._reactor.callFromThread(self._reactor.stop)
        self._thread.join(10)
        close_reactor(self._reactor)
