"""Connections of browsers, by `twisted.web.http`: one request each, few at a time, and none for long.

*Rules*
- At most `MAX_CONNECTIONS`. When they are taken, the oldest that has not sent its request gives way to a new one.
- A request has `RECEIVE_S` to arrive whole, however its bytes drip, and at most `MAX_HEADER_BYTES`; its answer has
  `ANSWER_S` to be made and read. Then the connection is aborted.
- A body is dropped as it comes, `MAX_BODY_BYTES` at most: the library would keep it in memory or in a file.
- A wrong password is answered after `WRONG_S`: guesses are as few as connections allow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import Any, cast

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IDelayedCall, IReactorTime, ITCPTransport
from twisted.internet.protocol import ServerFactory, connectionDone
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web import http

from mailismus.observe.amounts import noun
from mailismus.observe.text import shown
from mailismus.web.wire.answer import FIELDS, WebAnswer, refusal
from mailismus.web.wire.guard import RequestFacts, Ruling, WebGuard
from mailismus.web.wire.password import CHALLENGE

MAX_CONNECTIONS = 20
RECEIVE_S = 10.0
ANSWER_S = 30.0
MAX_HEADER_BYTES = 16384
MAX_LINE_BYTES = 8192
MAX_FIELDS = 100
MAX_BODY_BYTES = 65536
WRONG_S = 1.0
TELL_WRONG_S = 60.0
"""Between two lines in the log about wrong passwords."""

_BUSY = refusal(500, "The page can't be shown; the log of the server says why.")


@attrs.frozen
class Wanted:
    """What a request asks for, once it may ask. `is_lost`: whether nobody waits for the answer any more."""

    path: str
    arguments: Mapping[str, str]
    """The first value of each name."""
    is_lost: Callable[[], bool]


Respond = Callable[[Wanted], Awaitable[WebAnswer]]


class WebConnections(ServerFactory["WebChannel"]):
    """Makes the connections. `guard`: who may ask; it may be exchanged."""

    noisy = False
    log = Logger()

    def __init__(self, respond: Respond, guard: WebGuard, clock: IReactorTime) -> None:
        self.respond, self.guard, self.clock = respond, guard, clock
        self.open: dict[WebChannel, None] = {}
        """In the order in which they were made."""
        self._told_at: float | None = None
        self._wrong = 0

    def buildProtocol(self, addr: IAddress | None) -> WebChannel | None:
        """None: all connections are being answered; Twisted closes this one."""
        if len(self.open) >= MAX_CONNECTIONS:
            oldest = next((one for one in self.open if not one.has_request), None)
            if oldest is None:
                return None
            self.open.pop(oldest)
            oldest.cut_off()
        return WebChannel(self)

    def change_guard(self, guard: WebGuard) -> None:
        """Judge by this one from now on."""
        self.guard = guard

    def tell_wrong(self, peer: str) -> None:
        """Log a wrong password, now and then."""
        self._wrong += 1
        now = self.clock.seconds()
        if self._told_at is None or not 0 <= now - self._told_at < TELL_WRONG_S:
            words = "{peer} asked for the web page with a wrong name or password; {count} {times} since the last such line"
            times = noun(self._wrong, "time")
            self.log.warn(words, peer=shown(peer.encode("utf-8", "backslashreplace")), count=self._wrong, times=times)
            self._told_at, self._wrong = now, 0


class WebRequest(http.Request):
    """One request."""

    log = Logger()

    def __init__(self, connections: WebConnections, channel: WebChannel, queued: object = False) -> None:
        super().__init__(channel, queued)
        self._connections, self._channel = connections, channel
        self._body_bytes = 0
        self._is_lost = False

    def gotLength(self, length: int | None) -> None:
        """Keep nothing of a body."""
        self.content = BytesIO()

    def handleContentChunk(self, data: bytes) -> None:
        """Drop it."""
        self._body_bytes += len(data)
        if self._body_bytes > MAX_BODY_BYTES:
            self._channel.cut_off()

    def process(self) -> None:
        """Answer the request, which has been received whole."""
        self._channel.on_request()
        Deferred.fromCoroutine(self._answer())

    def connectionLost(self, reason: Failure) -> None:
        """Nobody waits any more."""
        self._is_lost = True
        super().connectionLost(reason)

    async def _answer(self) -> None:
        try:
            answer = await self._find_answer()
        except Exception:  # a bug of ours
            self.log.failure("The web page can't be shown")
            answer = _BUSY
        if not self._is_lost:
            self._send(answer)

    async def _find_answer(self) -> WebAnswer:
        asked = RequestFacts(
            self.method,
            self._fields(b"Host"),
            getattr(self.client, "host", ""),
            b"".join(self._fields(b"Authorization")[:1]),
            b"".join(self._fields(b"Sec-Fetch-Site")[:1]).lower(),
            b"".join(self._fields(b"Sec-Fetch-Mode")[:1]).lower(),
        )
        verdict = self._connections.guard.judge(asked)
        if verdict is Ruling.ANSWERED:
            arguments = {_text(name): _text(values[0]) for name, values in (self.args or {}).items()}
            return await self._connections.respond(Wanted(_text(self.path), arguments, lambda: self._is_lost))
        if verdict is Ruling.WRONG_PASSWORD:
            self._connections.tell_wrong(asked.peer)
            await deferLater(self._connections.clock, WRONG_S)
        fields = {401: (CHALLENGE,), 405: ((b"Allow", b"GET, HEAD"),)}.get(verdict.status, ())
        return refusal(verdict.status, verdict.text, *fields)

    def _fields(self, name: bytes) -> Sequence[bytes]:
        return self.requestHeaders.getRawHeaders(name, [])

    def _send(self, answer: WebAnswer) -> None:
        self.setResponseCode(answer.status)
        length = b"%d" % len(answer.content)
        for name, value in (*FIELDS, *answer.more, (b"Content-Type", answer.content_type), (b"Content-Length", length)):
            self.setHeader(name, value)
        self.write(answer.content)
        self.finish()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


class WebChannel(http.HTTPChannel):
    """One connection."""

    MAX_LENGTH = MAX_LINE_BYTES
    totalHeadersSize = MAX_HEADER_BYTES
    maxHeaders = MAX_FIELDS
    timeOut = None  # times are counted here, over all of a request

    def __init__(self, connections: WebConnections) -> None:
        super().__init__()
        self._connections = connections
        self.requestFactory: Any = partial(WebRequest, connections)  # Any: the library wants a class
        self.has_request = False
        self._timer: IDelayedCall | None = None

    def connectionMade(self) -> None:
        """Start the time-out."""
        self._connections.open[self] = None
        self._timer = self._connections.clock.callLater(RECEIVE_S, self.cut_off)
        super().connectionMade()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Cancel the time-out."""
        self._connections.open.pop(self, None)
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        super().connectionLost(reason)

    def on_request(self) -> None:
        """The request has been received: from now on it is the answer that takes time."""
        self.has_request = True
        if self._timer is not None and self._timer.active():
            self._timer.reset(ANSWER_S)

    def cut_off(self) -> None:
        """Abort the connection."""
        if self.transport is not None:
            cast(ITCPTransport, self.transport).abortConnection()

    def checkPersistence(self, request: http.Request, version: bytes) -> bool:
        """One request for each connection."""
        request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        return False
