"""The DNS client: names to records, asked of recursive name servers, without blocking anybody.

*Rules*: absolute names alone, no search list. An answer is kept as long as it is good, a denial too, a failure some seconds.
Many that want the same wait for one question; it ends when the last of them is cancelled. Sockets and waiting questions are
bounded. Aliases are followed, `MAX_ALIASES` in all. A query never fails: what went wrong is an answer, `Status.FAILED`.

*Not here*: what an answer means for mail (`mx`), the system's files (`system`). Why it is our own: decisions/0008-dns.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.python.failure import Failure

from mailismus.dns.answer import Answer, RecordType, Status
from mailismus.dns.cache import Cache, Key
from mailismus.dns.chance import Chance
from mailismus.dns.counters import DnsCounters
from mailismus.dns.message import MAX_ALIASES, encode_query, failed
from mailismus.dns.name import BadName
from mailismus.dns.question import MAX_SOCKETS, TOTAL, Question, QuestionContext
from mailismus.dns.servers import NameServer, ServerBook
from mailismus.dns.sockets import DatagramReceiver, Datagrams, DnsReactor, OpenUdp, UdpSocket

MAX_WAITING = 10_000
"""Questions that wait for a socket."""


class _Pending:
    """One question and who waits for its answer."""

    def __init__(self, key: Key, question: Question) -> None:
        self.key, self.question = key, question
        self.waiting: list[Deferred[Answer]] = []


class DnsClient:
    """The client. `servers`: looked at for each question, in order; `timeout_s`: how long one of them is waited for;
    `random`: one that nobody can foresee (`random.SystemRandom()`); `monotonic`: seconds; `max_sockets`: at a time."""

    def __init__(
        self,
        reactor: DnsReactor,
        servers: Callable[[], Sequence[NameServer]],
        timeout_s: float,
        random: Chance,
        monotonic: Callable[[], float],
        max_sockets: int = MAX_SOCKETS,
        open_udp: OpenUdp | None = None,
        counters: DnsCounters | None = None,
    ) -> None:
        """`counters`: those of an earlier client, to be gone on with."""

        def open_socket(server: NameServer, receiver: DatagramReceiver) -> Datagrams:
            return UdpSocket(reactor, server, receiver)

        self.counters = counters or DnsCounters()
        self._servers, self._monotonic = servers, monotonic
        self._book = ServerBook()
        self._in_line: deque[_Pending] = deque()
        self._world = QuestionContext(
            reactor,
            open_udp or open_socket,
            random,
            monotonic,
            timeout_s,
            self.counters,
            self._book,
            self._in_line,
            max_sockets,
        )
        self._cache = Cache()
        self._pending: dict[Key, _Pending] = {}
        self._is_going_on = False
        self._is_closed = False

    def query(self, name: str, rdtype: RecordType) -> Deferred[Answer]:
        """The records of a name (absolute, with or without the dot at its end), aliases followed. May be cancelled."""
        name = name.lower().removesuffix(".")
        answer = self._cache.find((name, rdtype), self._monotonic())
        if answer is not None and answer.status is not Status.ALIAS:
            self.counters.count_cache_hit()
            return succeed(answer)
        return Deferred.fromCoroutine(self._follow(name, rdtype))

    def query_all(self, questions: Iterable[Key]) -> Deferred[list[Answer]]:
        """All of these at once, the answers in their order. May be cancelled."""

        def unwrap(failure: Failure) -> Failure:
            return failure.value.subFailure if isinstance(failure.value, FirstError) else failure

        return gatherResults([self.query(*question) for question in questions], consumeErrors=True).addErrback(unwrap)

    def forget(self) -> None:
        """Ask everything anew."""
        self._cache.clear()

    def close(self) -> None:
        """No more sockets; who waits is told that nobody knows."""
        self._is_closed = True
        self._in_line.clear()
        for key, pending in [*self._pending.items()]:
            pending.question.abandon()
            self._tell(key, failed(key[0], "the server stops"))

    async def _follow(self, name: str, rdtype: RecordType) -> Answer:
        """`_ask`, and again for what it is an alias of."""
        asked, aliases = name, 0
        deadline = self._monotonic() + TOTAL * self._world.timeout_s
        while True:
            answer = await self._ask(name, rdtype)
            aliases += answer.aliases
            if answer.status is not Status.ALIAS:
                return answer
            if aliases > MAX_ALIASES:
                return failed(asked, f"more than {MAX_ALIASES} CNAME records one after the other for {asked}")
            if self._monotonic() >= deadline:
                return failed(asked, f"the CNAME records of {asked} took too long")
            name = answer.name

    def _ask(self, name: str, rdtype: RecordType) -> Deferred[Answer]:
        key = name, rdtype
        answer = self._cache.find(key, self._monotonic())
        if answer is not None:
            self.counters.count_cache_hit()
            return succeed(answer)
        if self._is_closed:
            return succeed(failed(name, "the server stops"))
        pending = self._pending.get(key)
        if pending is None:
            try:
                encode_query(0, name, rdtype)
            except BadName:
                return succeed(failed(name, "no name that can be asked for"))
            if len(self._in_line) >= MAX_WAITING:
                self.counters.count_rejected()
                return succeed(failed(name, "too many questions wait for the name servers"))
            self.counters.count_question()
            question = Question(self._world, name, rdtype, lambda answer: self._answered(key, answer))
            pending = self._pending[key] = _Pending(key, question)
            self._in_line.append(pending)
        waiter: Deferred[Answer] = Deferred(lambda cancelled: self._cancelled(key, cancelled))
        pending.waiting.append(waiter)
        self._go_on()
        return waiter

    def _go_on(self) -> None:
        """Begin what waits, as far as there are sockets."""
        if self._is_going_on:
            return  # a question that ended as it began: the loop below goes on
        self._is_going_on = True
        try:
            while self._in_line and self._world.has_room:
                self._in_line.popleft().question.begin(self._book.order(self._servers(), self._monotonic()))
        finally:
            self._is_going_on = False

    def _answered(self, key: Key, answer: Answer) -> None:
        if answer.status is Status.FAILED:
            self.counters.count_failure()
        self._cache.keep(key, answer, self._monotonic())
        self._tell(key, answer)
        self._go_on()

    def _tell(self, key: Key, answer: Answer) -> None:
        pending = self._pending.pop(key, None)
        waiting = pending.waiting if pending is not None else []
        while waiting:
            waiting.pop(0).callback(answer)

    def _cancelled(self, key: Key, waiter: Deferred[Answer]) -> None:
        pending = self._pending.get(key)
        if pending is None or waiter not in pending.waiting:
            return
        pending.waiting.remove(waiter)
        if not pending.waiting:
            del self._pending[key]
            pending.question.abandon()
            if pending in self._in_line:
                self._in_line.remove(pending)
            self._go_on()
