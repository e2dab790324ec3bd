"""The DNS client: asks recursive name servers for the records of names, without blocking.

*Rules*: names are absolute, there is no search list. Answers and denials are cached for their TTL, failures for some
seconds. Callers with the same question share one query, which ends when the last of them cancels. Sockets and waiting
questions are bounded; a question that waits for a socket loses none of its time. Aliases are followed, `MAX_ALIASES` in all.
A query never fails: a failure is an answer with `Status.FAILED`.

*Not here*: the meaning of an answer for mail (`mx`), the system's files (`system`). Why we have our own client:
decisions/0021-dnspython-behind-a-guard.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import attrs
from dns.rdatatype import RdataType
from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.python.failure import Failure

from mailismus.dns.answer import Answer, Status
from mailismus.dns.cache import Cache, Key
from mailismus.dns.counters import DnsCounters
from mailismus.dns.message import MAX_ALIASES, failed
from mailismus.dns.name import BadName, parse_name
from mailismus.dns.question import MAX_SOCKETS, TOTAL, Question, QuestionContext
from mailismus.dns.randomness import RandomSource
from mailismus.dns.servers import NameServer, ServerStates
from mailismus.dns.sockets import DatagramReceiver, Datagrams, DnsReactor, OpenUdp, UdpSocket

MAX_WAITING = 10_000
"""Questions that wait for a socket."""

T = TypeVar("T")


class _NotCached(Exception):
    """A name server would have to be asked."""


class _Pending:
    """One question and the callers that wait for its answer."""

    def __init__(self, key: Key, question: Question) -> None:
        self.key, self.question = key, question
        self.waiting: list[Deferred[tuple[Answer, float]]] = []


class DnsClient:
    """The client. `servers`: called for each question, gives the name servers in order. `timeout_s`: time-out of one server.
    `random`: unpredictable (`random.SystemRandom()`). `monotonic`: seconds. `max_sockets`: open at the same time."""

    def __init__(
        self,
        reactor: DnsReactor,
        servers: Callable[[], Sequence[NameServer]],
        timeout_s: float,
        random: RandomSource,
        monotonic: Callable[[], float],
        max_sockets: int = MAX_SOCKETS,
        open_udp: OpenUdp | None = None,
        counters: DnsCounters | None = None,
    ) -> None:
        """`counters`: those of an earlier client, to continue."""

        def open_socket(server: NameServer, receiver: DatagramReceiver) -> Datagrams:
            return UdpSocket(reactor, server, receiver)

        self.counters = counters or DnsCounters()
        self._servers, self._monotonic = servers, monotonic
        self._states = ServerStates()
        self._waiting: deque[_Pending] = deque()
        self._context = QuestionContext(
            reactor,
            open_udp or open_socket,
            random,
            monotonic,
            timeout_s,
            self.counters,
            self._states,
            self._waiting,
            max_sockets,
        )
        self._cache = Cache()
        self._pending: dict[Key, _Pending] = {}
        self._is_beginning = False
        self._is_closed = False
        self._may_ask = True

    def query(self, name: str, rdtype: RdataType) -> Deferred[Answer]:
        """The records of a name (absolute, with or without a final dot); aliases are followed. May be cancelled."""
        name = name.lower().removesuffix(".")
        answer = self._cache.find((name, rdtype), self._monotonic())
        if answer is not None and answer.status is not Status.ALIAS:
            self.counters.count_cache_hit()
            return succeed(answer)
        return Deferred.fromCoroutine(self._follow(name, rdtype))

    def query_all(self, questions: Iterable[Key]) -> Deferred[list[Answer]]:
        """The answers to all of these questions, in their order, queried at the same time. May be cancelled."""

        def unwrap(failure: Failure) -> Failure:
            return failure.value.subFailure if isinstance(failure.value, FirstError) else failure

        return gatherResults([self.query(*question) for question in questions], consumeErrors=True).addErrback(unwrap)

    def find_cached(self, look_up: Callable[[], Deferred[T]]) -> T | None:
        """The result of a look-up that needs cached answers alone; None: it would have to ask. Sends nothing."""
        found: list[T] = []
        self._may_ask = False
        try:
            look_up().addCallback(found.append).addErrback(_trap_not_cached)
        finally:
            self._may_ask = True
        return found[0] if found else None

    def press(self, is_pressed: bool) -> None:
        """Note whether look-ups wait until others end: then a question without an answer ends after one time-out."""
        self._context.press(is_pressed)

    @property
    def is_crowded(self) -> bool:
        """Whether questions wait for a socket."""
        return bool(self._waiting)

    def forget(self) -> None:
        """Drop all cached answers."""
        self._cache.clear()

    def close(self) -> None:
        """Close all sockets; waiting callers get `Status.FAILED`."""
        self._is_closed = True
        self._waiting.clear()
        for key, pending in [*self._pending.items()]:
            pending.question.abandon()
            self._deliver(key, failed(key[0], "the server stops"))

    async def _follow(self, name: str, rdtype: RdataType) -> Answer:
        """Ask for a name, and then for each name that it is an alias of."""
        asked, aliases, passed_s, is_secure = name, 0, 0.0, True
        while True:
            answer, question_s = await self._ask(name, rdtype)
            passed_s += question_s
            aliases += answer.aliases
            is_secure = is_secure and answer.is_secure
            if answer.status is not Status.ALIAS:
                return attrs.evolve(answer, is_secure=is_secure)
            if aliases > MAX_ALIASES:
                return failed(asked, f"more than {MAX_ALIASES} CNAME records one after the other for {asked}")
            if passed_s >= TOTAL * self._context.timeout_s:
                return failed(asked, f"the CNAME records of {asked} took too long")
            name = answer.name

    def _ask(self, name: str, rdtype: RdataType) -> Deferred[tuple[Answer, float]]:
        """The answer, and for how many seconds name servers were asked."""
        key = name, rdtype
        answer = self._cache.find(key, self._monotonic())
        if answer is not None:
            self.counters.count_cache_hit()
            return succeed((answer, 0.0))
        if not self._may_ask:
            raise _NotCached
        if self._is_closed:
            return succeed((failed(name, "the server stops"), 0.0))
        pending = self._pending.get(key)
        if pending is None:
            try:
                parse_name(name)
            except BadName:
                return succeed((failed(name, "no name that can be asked for"), 0.0))
            if len(self._waiting) >= MAX_WAITING:
                self.counters.count_rejected()
                return succeed((failed(name, "too many questions wait for the name servers"), 0.0))
            self.counters.count_question()
            question = Question(self._context, name, rdtype, lambda answer: self._answered(key, answer))
            pending = self._pending[key] = _Pending(key, question)
            self._waiting.append(pending)
        waiter: Deferred[tuple[Answer, float]] = Deferred(lambda cancelled: self._cancelled(key, cancelled))
        pending.waiting.append(waiter)
        self._begin_waiting()
        return waiter

    def _begin_waiting(self) -> None:
        """Begin waiting questions while there are sockets."""
        if self._is_beginning:
            return  # a question ended as it began: the loop below continues
        self._is_beginning = True
        try:
            while self._waiting and (self._context.has_room or self._context.make_room()):
                self._waiting.popleft().question.begin(self._states.order(self._servers(), self._monotonic()))
        finally:
            self._is_beginning = False

    def _answered(self, key: Key, answer: Answer) -> None:
        if answer.status is Status.FAILED:
            self.counters.count_failure()
        self._cache.keep(key, answer, self._monotonic())
        self._deliver(key, answer)
        self._begin_waiting()

    def _deliver(self, key: Key, answer: Answer) -> None:
        pending = self._pending.pop(key, None)
        if pending is None:
            return
        waiting, passed_s = pending.waiting, pending.question.passed_s
        while waiting:
            waiting.pop(0).callback((answer, passed_s))

    def _cancelled(self, key: Key, waiter: Deferred[tuple[Answer, float]]) -> None:
        pending = self._pending.get(key)
        if pending is None or waiter not in pending.waiting:
            return
        pending.waiting.remove(waiter)
        if not pending.waiting:
            del self._pending[key]
            pending.question.abandon()
            if pending in self._waiting:
                self._waiting.remove(pending)
            self._begin_waiting()


def _trap_not_cached(failure: Failure) -> None:
    failure.trap(_NotCached)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
