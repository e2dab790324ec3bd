"""The metrics endpoint: `GET /metrics` by HTTP, and nothing else (RFC 9112).

*Rules*: one request for each connection, at most `MAX_CONNECTIONS`, `TIMEOUT_S` for all of a request, `MAX_REQUEST_BYTES` of
it. A request changes nothing. The listening address decides who may connect, by default 127.0.0.1: there is no password.

*Not here*: the page itself (`observe.metrics_page`), the making of sockets.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IAddress, IDelayedCall, IListeningPort, IReactorSocket, IReactorTime, ITCPTransport
from twisted.internet.protocol import Protocol, ServerFactory
from twisted.logger import Logger
from twisted.python.failure import Failure

PATH = b"/metrics"
MAX_CONNECTIONS = 10
TIMEOUT_S = 10.0
MAX_REQUEST_BYTES = 16384
"""Bytes of a request, including header fields."""


class MetricsEndpoint:
    """Serves the result of `page`, of type `content_type`."""

    def __init__(self, page: Callable[[], bytes], content_type: bytes, clock: IReactorTime, sockets: IReactorSocket) -> None:
        self._sockets = sockets
        self._factory = MetricsAnswers(page, content_type, clock)
        self._ports: list[IListeningPort] = []

    def start(self, bound: Sequence[socket.socket]) -> None:
        """Serve on these listening sockets, and close them (the reactor has copies)."""
        for one in bound:
            adopt = self._sockets.adoptStreamPort
            self._ports.append(adopt(one.fileno(), one.family, self._factory))  # type: ignore[arg-type]  # a private type is wanted
            one.close()

    def stop(self) -> Deferred[None]:
        """Stop serving; requests without an answer are aborted."""
        stopped = [done for port in self._ports if isinstance(done := port.stopListening(), Deferred)]
        self._ports.clear()
        for answer in list(self._factory.open):
            answer.cut_off()
        return DeferredList(stopped).addCallback(lambda _: None)


class MetricsAnswers(ServerFactory["HttpResponse"]):
    """Makes the connections."""

    noisy = False

    def __init__(self, page: Callable[[], bytes], content_type: bytes, clock: IReactorTime) -> None:
        self.page, self.content_type, self.clock = page, content_type, clock
        self.open: set[HttpResponse] = set()

    def buildProtocol(self, addr: IAddress | None) -> HttpResponse | None:
        """None: too many connections; Twisted closes this one."""
        return HttpResponse(self) if len(self.open) < MAX_CONNECTIONS else None


class HttpResponse(Protocol):
    """One connection."""

    log = Logger()
    transport: ITCPTransport
    _timer: IDelayedCall

    def __init__(self, answers: MetricsAnswers) -> None:
        self._answers = answers
        self._request = bytearray()
        self._is_answered = False

    def connectionMade(self) -> None:
        """Start the time-out."""
        self._answers.open.add(self)
        self._timer = self._answers.clock.callLater(TIMEOUT_S, self.cut_off)

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Cancel the time-out."""
        self._answers.open.discard(self)
        if self._timer.active():
            self._timer.cancel()

    def cut_off(self) -> None:
        """Abort the connection."""
        self.transport.abortConnection()

    def dataReceived(self, data: bytes) -> None:
        """Collect the request, which ends with an empty line; later bytes are ignored."""
        if self._is_answered:
            return
        self._request += data
        if b"\r\n\r\n" not in self._request and b"\n\n" not in self._request:
            if len(self._request) > MAX_REQUEST_BYTES:
                self._answer(b"431 Request Header Fields Too Large", b"")
            return
        words = bytes(self._request).split(b"\n", 1)[0].rstrip(b"\r").split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            self._answer(b"400 Bad Request", b"")
        elif words[0] not in (b"GET", b"HEAD"):
            self._answer(b"405 Method Not Allowed", b"", b"Allow: GET, HEAD\r\n")
        else:
            self._answer_request(words[1], is_head=words[0] == b"HEAD")

    def _answer_request(self, target: bytes, is_head: bool) -> None:
        if target.partition(b"?")[0] != PATH:
            self._answer(b"404 Not Found", b"The metrics are at /metrics.\n", is_head=is_head)
            return
        try:
            page = self._answers.page()
        except Exception:
            self.log.failure("The metrics can't be shown")
            self._answer(b"500 Internal Server Error", b"")
            return
        self._answer(b"200 OK", page, content_type=self._answers.content_type, is_head=is_head)

    def _answer(
        self,
        status: bytes,
        content: bytes,
        more: bytes = b"",
        *,
        content_type: bytes = b"text/plain; charset=utf-8",
        is_head: bool = False,
    ) -> None:
        self._is_answered = True
        self._request.clear()
        head = b"HTTP/1.1 %b\r\n%bContent-Type: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        self.transport.write(head % (status, more, content_type, len(content)) + (b"" if is_head else content))
        self.transport.loseConnection()
