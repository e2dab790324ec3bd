"""A connection whose refusal is known: pika tells how often it has tried, and not why the broker refused."""

from __future__ import annotations

from typing import Any

from twisted.internet.interfaces import ITransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure


class GuardedProtocol(Protocol):
    """Hands everything to a protocol of pika. `malformed`: what pika raises where the other side speaks no AMQP; such a
    connection is cut off."""

    def __init__(self, inner: Any, malformed: type[Exception]) -> None:
        self._inner, self._malformed = inner, malformed
        self.refusal: Exception | None = None
        """Why the connection was not opened; None: that is not known."""

    def makeConnection(self, transport: ITransport) -> None:
        super().makeConnection(transport)
        self._inner.makeConnection(transport)

    def dataReceived(self, data: bytes) -> None:
        try:
            self._inner.dataReceived(data)
        except self._malformed:
            self._refused(ConnectionError("what listens there is no RabbitMQ"))
            self._inner.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._refused(self._inner._impl._error)  # pika's own protocol puts `reason` in its place
        self._inner.connectionLost(reason)

    def _refused(self, error: object) -> None:
        if self.refusal is None and isinstance(error, Exception):
            text = getattr(error, "reply_text", "")
            self.refusal = ConnectionError(text) if text else error
