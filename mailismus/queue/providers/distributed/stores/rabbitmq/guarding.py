"""A connection whose refusal is known: pika tells how often it has tried, and not why the broker refused."""

from __future__ import annotations

from typing import Any

from twisted.internet.interfaces import ITransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.stores.libraries import load

MOST_BYTES = 64 * 1024
"""Of what the broker says before the connection is open: some 500 bytes, and its refusal behind them."""


class GuardedProtocol(Protocol):
    """Hands everything to a protocol of pika. A connection whose other side speaks no AMQP is cut off."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._malformed = inner, load("pika", "exceptions").ProtocolSyntaxError
        self._said: bytearray | None = bytearray()
        """What the broker has said; None: the connection is open."""
        self._is_malformed = False

    def trust(self) -> None:
        """The connection is open."""
        self._said = None

    def refusal(self) -> str:
        """Why the connection was not opened, in the broker's words; empty: it did not say."""
        if self._is_malformed:
            return "what listens there is no RabbitMQ"
        decode, close = load("pika", "frame").decode_frame, load("pika", "spec").Connection.Close
        left = bytes(self._said or b"")
        try:
            while left:
                used, frame = decode(left)
                if not used:
                    break
                if isinstance(getattr(frame, "method", None), close):
                    return str(frame.method.reply_text)
                left = left[used:]
        except self._malformed:
            pass
        return ""

    def makeConnection(self, transport: ITransport) -> None:
        super().makeConnection(transport)
        self._inner.makeConnection(transport)

    def dataReceived(self, data: bytes) -> None:
        if self._said is not None and len(self._said) < MOST_BYTES:
            self._said += data
        try:
            self._inner.dataReceived(data)
        except self._malformed:
            self._is_malformed = True
            self._inner.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._inner.connectionLost(reason)
