"""One connection to the admin socket: a hello, a request, an answer at the speed the client reads it.

*Rules*: nothing a client does costs more than one request line and one part of an answer in memory, or more time than
its limits; nothing it sends is believed before it has been checked.
"""

from __future__ import annotations

import os

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IDelayedCall, IPullProducer, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.admin.verbs import Answer, LookableQueue, begin_answer
from mailismus.admin.wire import HELLO, MAX_REQUEST_BYTES, Refusal, WireError, decode_request, encode, encode_end
from mailismus.errors import Corrupt, StorageError

REQUEST_TIMEOUT_S = 30.0
"""For the whole request to come."""

IDLE_TIMEOUT_S = 3600.0
"""For a client that reads nothing, say a pager: it holds nothing but its connection."""


@implementer(IPullProducer)
class AdminSession(Protocol):
    """The server's end. It pulls: the next part of an answer is made when the last one has been written."""

    log = Logger()

    def __init__(self, queue: LookableQueue, clock: IReactorTime) -> None:
        self._queue = queue
        self._clock = clock
        self._received = bytearray()
        self._answer: Answer | None = None
        self._timeout: IDelayedCall | None = None
        self._is_making_a_part = False
        self._is_over = False

    def connectionMade(self) -> None:
        self._timeout = self._clock.callLater(REQUEST_TIMEOUT_S, self._time_out)
        self._write(encode(HELLO))

    def connectionLost(self, reason: Failure | None = None) -> None:
        self._is_over = True
        self._close_answer()
        if self._timeout is not None and self._timeout.active():
            self._timeout.cancel()

    def abort(self) -> None:
        """The server stops."""
        self._is_over = True
        if self.transport is not None:
            self.transport.abortConnection()  # type: ignore[attr-defined] # every stream transport of Twisted has it

    def dataReceived(self, data: bytes) -> None:
        if self._answer is not None or self._is_over:
            return
        self._received += data
        line, end, _ = bytes(self._received).partition(b"\n")
        if len(line) > MAX_REQUEST_BYTES:
            self._refuse(os.EX_USAGE, "the request is too long")
        elif end:
            self._begin(line)

    def _begin(self, line: bytes) -> None:
        self._received.clear()
        try:
            self._answer = begin_answer(decode_request(line), self._queue, self._clock.seconds())
        except WireError as error:
            self._refuse(os.EX_UNAVAILABLE, str(error))
        except Refusal as refusal:
            self._refuse(refusal.status, refusal.text)
        else:
            self._progress()
            consumer = IConsumer(self.transport)
            consumer.registerProducer(self, False)

    # IPullProducer

    def resumeProducing(self) -> None:
        """All that was written is on its way: the next part, please."""
        if self._is_making_a_part or self._is_over or self._answer is None:
            return
        self._is_making_a_part = True
        making = Deferred.fromCoroutine(self._answer.next())
        making.addCallbacks(self._part_made, self._part_failed)

    def stopProducing(self) -> None:
        self._is_over = True

    def _part_made(self, lines: list[bytes] | None) -> None:
        self._is_making_a_part = False
        if self._is_over:
            return
        self._progress()
        if lines is None:
            self._finish(encode_end(self._answer.gaps.all() if self._answer is not None else ()))
        elif lines:
            self._write(b"".join(lines))
        else:
            # Nothing was found in this part; the reactor gets its turn before the next.
            self._clock.callLater(0, self.resumeProducing)

    def _part_failed(self, failure: Failure) -> None:
        self._is_making_a_part = False
        if self._is_over:
            return
        if isinstance(failure.value, Refusal):
            self._refuse(failure.value.status, failure.value.text)
        elif isinstance(failure.value, StorageError):
            self._refuse(os.EX_DATAERR if isinstance(failure.value, Corrupt) else os.EX_IOERR, str(failure.value))
        else:
            self.log.failure("an admin command failed", failure)
            self._refuse(os.EX_SOFTWARE, "the server failed; its log says how")

    # Within

    def _refuse(self, status: int, text: str) -> None:
        self._finish(encode({"error": text, "status": status}))

    def _finish(self, last: bytes) -> None:
        self._is_over = True
        self._write(last)
        if self._answer is not None:
            self._close_answer()
            IConsumer(self.transport).unregisterProducer()
        if self.transport is not None:
            self.transport.loseConnection()

    def _close_answer(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def _progress(self) -> None:
        if self._timeout is not None and self._timeout.active():
            self._timeout.reset(IDLE_TIMEOUT_S)

    def _time_out(self) -> None:
        self.abort()
