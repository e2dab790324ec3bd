"""A browser without a network: connections to the page in memory."""

from __future__ import annotations

from email.message import Message
from email.parser import BytesParser

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailismus.web.wire.answer import WebAnswer
from mailismus.web.wire.channel import Respond, WebChannel, WebConnections
from mailismus.web.wire.guard import WebGuard

GONE = Failure(ConnectionDone())
HERE = WebGuard((), None, is_loopback=True)


class Transport(StringTransport):
    """What was written is `said`."""

    aborted = False

    @property
    def said(self) -> bytes:
        return bytes(self.value())

    def abortConnection(self) -> None:
        self.aborted = True


class Response:
    """A parsed answer."""

    def __init__(self, data: bytes) -> None:
        head, _, self.content = data.partition(b"\r\n\r\n")
        first, _, fields = head.partition(b"\r\n")
        self.status = int(first.split(b" ")[1])
        self.fields: Message = BytesParser().parsebytes(fields)
        self.text = self.content.decode("utf-8")


class House:
    """A server whose pages are made by `respond`."""

    def __init__(self, respond: Respond, guard: WebGuard = HERE, peer: str = "127.0.0.1") -> None:
        self.clock, self.peer = Clock(), peer
        self.connections = WebConnections(respond, guard, self.clock)

    def connect(self) -> tuple[WebChannel, Transport]:
        channel = self.connections.buildProtocol(None)
        assert channel is not None
        transport = Transport(peerAddress=IPv4Address("TCP", self.peer, 40000))
        channel.makeConnection(transport)
        return channel, transport

    def send(self, request: bytes) -> Transport:
        channel, transport = self.connect()
        channel.dataReceived(request)
        return transport

    def ask(self, target: str, method: str = "GET", *fields: str, host: str = "127.0.0.1:8080") -> Response:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *fields, "", ""]
        return Response(self.send("\r\n".join(lines).encode("utf-8")).said)


async def hello(_: object) -> WebAnswer:
    """A page."""
    return WebAnswer(200, "<p>Grüße".encode())
