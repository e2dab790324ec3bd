"""New mail in a closed loop: each session commits a message and waits for the answer. Delivered 2 ms after it was taken.

A delivery is settled by a commit of its own, as the server does. At most `MOST_OUT` entries are out at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from benchmarks.drain import percentile
from benchmarks.log.bench import Bench
from benchmarks.measure.disk_bytes import DiskCounter, device_bytes
from mailismus.errors import StorageError
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Message, Submission
from mailismus.start.server import Reactor

WARM_UP_S = 0.7
DELIVERY_S = 0.002
MOST_OUT = 500
AT_ONCE = 100
ENVELOPE = Envelope(b"sender@from.bench.example", (b"recipient@to.bench.example",), b"127.0.0.1")


class Mail:
    """The load of one queue."""

    def __init__(self, reactor: Reactor, bench: Bench, sessions: int) -> None:
        self._reactor, self._bench, self._sessions = reactor, bench, sessions
        self._queue = bench.queue
        self._is_over = False
        self._out = 0
        self._is_asking = False
        self.answers_s: list[float] = []
        self.settled_s: list[float] = []
        self.positions = 0
        self.error: StorageError | None = None
        self._settled = _Settled(self)

    def begin(self) -> None:
        """Begin all sessions."""
        for _ in range(self._sessions):
            self._send()
        self._ask()

    def end(self) -> None:
        """Send nothing more."""
        self._is_over = True

    # in

    def _send(self) -> None:
        if not self._is_over:
            Deferred.fromCoroutine(self._commit()).addErrback(self._on_error)

    async def _commit(self) -> None:
        draft = await self._bench.draft()
        self._queue.begin_commit([Submission(draft, ENVELOPE, time.time())], (), (), self, time.perf_counter())

    def on_durable(self, marks: Sequence[float], gone: Sequence[Sequence[SpoolId]]) -> None:
        """As `CommitListener`."""
        now = time.perf_counter()
        for began in marks:
            self.answers_s.append(now - began)
            self._reactor.callLater(0, self._send)

    def on_failed(self, marks: Sequence[float], error: StorageError) -> None:
        """As `CommitListener`."""
        self.error = error

    def _on_error(self, failure: object) -> None:
        self.error = StorageError(str(failure))

    # out

    def _ask(self) -> None:
        if not self._is_asking and self._out < MOST_OUT:
            self._is_asking = True
            self._queue.ready(Area.INCOMING).addCallback(self._on_ready)

    def _on_ready(self, _: None) -> None:
        taken = self._queue.take(Area.INCOMING, AT_ONCE, time.time(), None)
        taken.addCallback(self._on_taken)

    def _on_taken(self, messages: list[Message]) -> None:
        self._is_asking = False
        self._out += len(messages)
        if messages:
            self._reactor.callLater(DELIVERY_S, self._settle, messages)
        self._reactor.callLater(0, self._ask)

    def _settle(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._queue.begin_commit((), (), [(message.spool_id, [1])], self._settled, time.perf_counter())

    def on_settled(self, marks: Sequence[float]) -> None:
        """These deliveries are durable."""
        now = time.perf_counter()
        self.settled_s += [now - began for began in marks]
        self._out -= len(marks)
        self._ask()


class _Settled:
    """The listener of settlements."""

    def __init__(self, mail: Mail) -> None:
        self._mail = mail

    def on_durable(self, marks: Sequence[float], gone: Sequence[Sequence[SpoolId]]) -> None:
        self._mail.on_settled(marks)

    def on_failed(self, marks: Sequence[float], error: StorageError) -> None:
        self._mail.error = error


async def measure_mail(
    reactor: Reactor, bench: Bench, sessions: int, seconds: float, counter: DiskCounter
) -> dict[str, float]:
    """The figures of so many seconds. The load goes on behind them. Raises: StorageError."""
    await bench.queue.open()
    mail = Mail(reactor, bench, sessions)
    mail.begin()
    await deferLater(reactor, WARM_UP_S)
    answers, settled, rounds = len(mail.answers_s), len(mail.settled_s), bench.queue.rounds.rounds
    used, device, began_s = counter.now(), device_bytes(bench.directory), time.perf_counter()
    await deferLater(reactor, seconds)
    took_s, used = time.perf_counter() - began_s, counter.now().minus(used)
    device = device_bytes(bench.directory) - device
    if mail.error is not None:
        raise mail.error
    answers_s, settled_s = mail.answers_s[answers:], mail.settled_s[settled:]
    messages = max(1, len(settled_s))
    return {
        "messages/s": len(settled_s) / took_s,
        "answer ms": percentile(answers_s, 0.5) * 1e3,
        "answer p95 ms": percentile(answers_s, 0.95) * 1e3,
        "settled ms": percentile(settled_s, 0.5) * 1e3,
        "barriers/msg": used.barriers / messages,
        "KiB written/msg": used.written_bytes / messages / 1024,
        "device KiB/msg": device / messages / 1024,
        "files/msg": used.files / messages,
        "positions": bench.queue.rounds.rounds - rounds,
    }
