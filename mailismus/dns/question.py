"""The question: one name and record type, sent to one name server after the other until one answers.

*Rules*:
- The next server is asked after a quarter of `timeout_s`, in the second round after half of it, and so on, while the earlier
  ones may still answer. So each server has at least `timeout_s`, and twenty dead servers do not block the next one.
- A server that reported a failure is not asked again. A server without any answer is asked again in the next round, since a
  datagram may have been lost.
- At most `MAX_OPEN` sockets at the same time, and `TOTAL` time-outs in all, from its first socket on. Without free sockets a
  question uses only one, and gives the others to questions that wait. While others wait for a socket, or look-ups for these,
  it ends after one time-out.
- `done` is called once, unless `abandon` was called.

*Not here*: one server (`attempt`), callers and cache (`client`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sized

import attrs
from dns.rdatatype import RdataType
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from mailismus.dns.answer import Answer
from mailismus.dns.attempt import Attempt
from mailismus.dns.counters import DnsCounters
from mailismus.dns.message import failed
from mailismus.dns.randomness import RandomSource
from mailismus.dns.servers import NameServer, ServerStates
from mailismus.dns.sockets import DnsReactor, OpenUdp

ROUNDS = 3
"""How often each server is asked, if time allows and none answers."""
MAX_OPEN = 4
TOTAL = 6
"""Time limit of a question, in time-outs: 30 s by default."""
MAX_SOCKETS = 100
"""Default limit of sockets of all questions together."""
MAX_SERVERS = 50
_TICK_S = 1e-6
_SHOWN = 3
"""Servers that a text names."""


@attrs.define(eq=False)
class QuestionContext:
    """State that all questions of one client share."""

    reactor: DnsReactor
    open_udp: OpenUdp
    random: RandomSource
    monotonic: Callable[[], float]
    timeout_s: float
    counters: DnsCounters
    states: ServerStates
    waiting: Sized
    """Questions that wait for a socket."""
    max_sockets: int
    sockets: int = 0
    is_pressed: bool = False
    """Whether look-ups wait until others end."""
    spread: dict[Question, None] = attrs.Factory(dict)
    """Questions with several sockets."""

    @property
    def has_room(self) -> bool:
        """Whether another socket may be opened."""
        return self.sockets < self.max_sockets

    @property
    def is_busy(self) -> bool:
        """Whether others wait for questions to end."""
        return self.is_pressed or bool(self.waiting)

    def press(self, is_pressed: bool) -> None:
        """Note whether look-ups wait until others end."""
        self.is_pressed = is_pressed

    def make_room(self) -> bool:
        """Take a socket from a question that has several. Whether there is room now."""
        for question in self.spread:
            question.give_up_oldest()
            break
        return self.has_room


class Question:
    """One question; an `AttemptOwner`. Its time runs from `begin` on."""

    _log = Logger()

    def __init__(self, context: QuestionContext, name: str, rdtype: RdataType, done: Callable[[Answer], None]) -> None:
        self._context, self._name, self._rdtype, self._done = context, name, rdtype, done
        self._asked_at = self._next_at = self._deadline = self._room_needed_at = math.inf
        self._plan: deque[tuple[NameServer, float]] = deque()
        self._open: dict[NameServer, Attempt] = {}
        self._reasons: dict[NameServer, str] = {}
        self._silent: set[NameServer] = set()
        self._is_over = False
        self._timer: IDelayedCall | None = None

    def begin(self, servers: list[NameServer]) -> None:
        """Ask these servers, in this order."""
        timeout_s = self._context.timeout_s
        self._asked_at = self._context.monotonic()
        self._deadline, self._room_needed_at = self._asked_at + TOTAL * timeout_s, self._asked_at + timeout_s
        step_s = timeout_s / MAX_OPEN
        self._plan.extend((server, step_s * 2**turn) for turn in range(ROUNDS) for server in servers[:MAX_SERVERS])
        self._ask_next()

    def abandon(self) -> None:
        """Stop without an answer: no caller waits any more."""
        self._is_over = True
        self._cancel_timer()
        for attempt in [*self._open.values()]:
            self._close(attempt)

    def give_up_oldest(self) -> None:
        """Wait no more for the server that was asked first."""
        oldest = next(iter(self._open.values()))
        self._note_timeout(oldest)
        self._close(oldest)

    @property
    def passed_s(self) -> float:
        """Seconds since it began; 0: it waits."""
        return max(0.0, self._context.monotonic() - self._asked_at)

    def answered(self, attempt: Attempt, answer: Answer) -> None:
        """See `AttemptOwner`."""
        context = self._context
        self._remove(attempt)
        if context.states.note_answer(attempt.server):
            self._log.info("The name server {server} answers again", server=str(attempt.server))
        for other in self._open.values():
            if other.began < attempt.began:
                self._note_timeout(other)
        for server in self._silent - {attempt.server}:
            self._note_dead(server, "it is silent while another answers")
        self._finish(answer)

    def server_failed(self, attempt: Attempt, text: str, is_dead: bool) -> None:
        """See `AttemptOwner`."""
        self._remove(attempt)
        self._reasons[attempt.server] = text
        if is_dead:
            self._note_dead(attempt.server, text)
        self._ask_next()

    def switched_to_tcp(self, attempt: Attempt) -> None:
        """See `AttemptOwner`. The server is alive, so it gets its full time before the next one is asked."""
        self._wait(self._context.timeout_s)

    def _ask_next(self) -> None:
        while self._plan and not self._is_over:
            server, step_s = self._plan.popleft()
            if server in self._reasons:
                continue
            self._wait(step_s if self._plan else self._context.timeout_s)
            self._ask(server)
            return
        if not self._is_over and not self._open:
            self._give_up()

    def _ask(self, server: NameServer) -> None:
        attempt = self._open.get(server)
        if attempt is not None:
            attempt.repeat()
            return
        context = self._context
        if len(self._open) >= MAX_OPEN or (self._open and not context.has_room):
            self.give_up_oldest()
        made = self._open[server] = Attempt(
            context.reactor,
            context.open_udp,
            context.counters,
            server,
            self._name,
            self._rdtype,
            context.random.randrange(0x10000),
            context.timeout_s,
            self,
            context.monotonic(),
        )
        context.sockets += 1
        if len(self._open) > 1:
            context.spread[self] = None
        made.begin()

    def _wait(self, seconds: float) -> None:
        """Wait this long before the next server; less if other questions wait for a socket."""
        context = self._context
        now = context.monotonic()
        self._next_at = now + seconds
        ends_at = self._room_needed_at if context.is_busy else self._deadline
        self._cancel_timer()
        self._timer = context.reactor.callLater(max(0.0, min(self._next_at, ends_at) - now), self._on_timer)

    def _on_timer(self) -> None:
        now = self._context.monotonic()
        if now >= self._deadline or (self._context.is_busy and now >= self._room_needed_at):
            self._give_up()
        elif now < self._next_at - _TICK_S:
            self._wait(self._next_at - now)
        elif self._plan:
            self._ask_next()
        else:
            self._give_up()

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()

    def _give_up(self) -> None:
        for attempt in self._open.values():
            self._note_timeout(attempt)
        silence = {server: attempt.silence for server, attempt in self._open.items()}
        silence |= {server: f"no answer from {server}" for server in self._silent if server not in silence}
        reasons = list((silence | self._reasons).values()) or ["there is no name server"]
        text = ", ".join(reasons[:_SHOWN])
        if len(reasons) > _SHOWN:
            text += f" and {len(reasons) - _SHOWN} more"
        if silence:
            text += f" in {self.passed_s:.3g} s"
        self._finish(failed(self._name, text))

    def _finish(self, answer: Answer) -> None:
        if not self._is_over:
            self.abandon()
            self._done(answer)

    def _note_timeout(self, attempt: Attempt) -> None:
        self._context.counters.count_timeout()
        self._silent.add(attempt.server)

    def _note_dead(self, server: NameServer, why: str) -> None:
        if self._context.states.note_failure(server, self._context.monotonic()):
            self._log.warn("The name server {server} is asked last for a while: {why}", server=str(server), why=why)

    def _close(self, attempt: Attempt) -> None:
        self._remove(attempt)
        attempt.close()

    def _remove(self, attempt: Attempt) -> None:
        if self._open.pop(attempt.server, None) is not None:
            self._context.sockets -= 1
            if len(self._open) <= 1:
                self._context.spread.pop(self, None)
