"""What is sent and what is read: both at the pace of the other side, so that no content is in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IConsumer as ITransportConsumer
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import Protocol
from twisted.internet.task import CooperativeTask, Cooperator, TaskStopped
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.iweb import IBodyProducer, IResponse
from zope.interface import implementer

from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.objects import PIECE_BYTES, IBody

BUFFER_BYTES = 2 * PIECE_BYTES


@implementer(IBodyProducer)
class SentBody:
    """An object on its way to the store."""

    def __init__(self, reactor: IReactorTime, body: IBody) -> None:
        self.length = body.size_bytes
        self._body = body
        self._cooperator = Cooperator(scheduler=lambda call: reactor.callLater(0.0, call))
        self._task: CooperativeTask[Iterator[None]] | None = None

    def startProducing(self, consumer: ITransportConsumer) -> Deferred[None]:
        if self.length <= PIECE_BYTES:  # with the head, in this turn
            for piece in self._body.pieces():
                consumer.write(piece)
            return succeed(None)
        self._task = self._cooperator.cooperate(self._write(consumer))
        done: Deferred[None] = self._task.whenDone().addCallbacks(lambda _: None, _never)
        return done

    def _write(self, consumer: ITransportConsumer) -> Iterator[None]:
        for piece in self._body.pieces():
            consumer.write(piece)
            yield None

    def pauseProducing(self) -> None:
        if self._task is not None:
            self._task.pause()

    def resumeProducing(self) -> None:
        if self._task is not None:
            self._task.resume()

    def stopProducing(self) -> None:
        if self._task is not None:
            try:
                self._task.stop()
            except Exception:
                pass  # it has ended by itself


def _never(failure: Failure) -> Deferred[None]:
    """Who has stopped it waits for nothing; all else is an error of the body."""
    failure.trap(TaskStopped)
    return Deferred()


class ReadObject(Protocol):
    """`IObject` over the body of an answer. At most `BUFFER_BYTES` and what one read of the socket brings are kept."""

    def __init__(self, store: str, size_bytes: int, read_s: float, reactor: IReactorTime) -> None:
        self._store, self._reactor, self._read_s = store, reactor, read_s
        self._size_bytes = size_bytes
        self._left = size_bytes
        self._buffer = bytearray()
        self._waiting: Deferred[bytes] | None = None
        self._end: NotDone | None = None
        self._is_over = False
        self._is_paused = False

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def next(self) -> Deferred[bytes]:
        assert self._waiting is None, "one at a time"
        if self._buffer or (self._is_over and self._end is None):
            return succeed(self._take())
        if self._end is not None:
            return fail(self._end)
        self._resume()
        waiting: Deferred[bytes] = Deferred()
        self._waiting = waiting
        late = self._reactor.callLater(self._read_s, self._give_up)

        def stop_the_clock(result: bytes) -> bytes:
            if late.active():
                late.cancel()
            return result

        waiting.addBoth(stop_the_clock)
        return waiting

    def close(self) -> None:
        self._buffer.clear()
        if not self._is_over:
            self._finish(NotDone(self._store, "it is closed"))
            self._abort()

    def dataReceived(self, data: bytes) -> None:
        if self._is_over:
            return
        self._buffer += data
        self._left -= len(data)
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.callback(self._take())
        if len(self._buffer) >= BUFFER_BYTES and not self._is_paused and self.transport is not None:
            self._is_paused = True
            self.transport.pauseProducing()  # type: ignore[attr-defined]  # of the body, as `deliverBody` gives it

    def connectionLost(self, reason: Failure = Failure(ConnectionDone())) -> None:  # noqa: B008
        if self._is_over:
            return
        if reason.check(ResponseDone) and not self._left:
            self._finish(None)
        else:
            self._finish(NotDone(self._store, "the object ended too early"))

    def _take(self) -> bytes:
        piece = bytes(self._buffer[:PIECE_BYTES])
        del self._buffer[:PIECE_BYTES]
        return piece

    def _resume(self) -> None:
        if self._is_paused and self.transport is not None:
            self._is_paused = False
            self.transport.resumeProducing()  # type: ignore[attr-defined]

    def _give_up(self) -> None:
        self._finish(NotDone(self._store, f"nothing came for {self._read_s:g} s"))
        self._abort()

    def _finish(self, error: NotDone | None) -> None:
        self._is_over, self._end = True, error
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            if error is None:
                waiting.callback(self._take())
            else:
                waiting.errback(error)

    def _abort(self) -> None:
        if self.transport is not None:
            # A paused body must go on to see its end.
            self.transport.stopProducing()  # type: ignore[attr-defined]


class Collected(Protocol):
    """A short answer as a whole; of a longer one its begin."""

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes = limit, bytearray()
        self.done: Deferred[bytes | None] = Deferred()
        """Fires with the bytes; None: the answer was cut off."""

    def dataReceived(self, data: bytes) -> None:
        self._bytes += data[: self._limit - len(self._bytes)]

    def connectionLost(self, reason: Failure = Failure(ConnectionDone())) -> None:  # noqa: B008
        self.done.callback(bytes(self._bytes) if reason.check(ResponseDone) else None)

    def leave(self) -> None:
        """End the connection: the rest is not wanted."""
        if self.transport is not None:
            self.transport.stopProducing()  # type: ignore[attr-defined]  # of the body, as `deliverBody` gives it


def size_of(response: IResponse) -> int:
    """The bytes of the answer's body. Raises `ValueError` where the store does not tell."""
    if not isinstance(response.length, int):
        raise ValueError("the store does not tell the size")
    return int(response.length)
