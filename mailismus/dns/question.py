"""The question: one name and type, put to one name server after the other until one answers.

*Rules*: the next server is asked after a quarter of `timeout_s`, in the second round after half of it, and so on, while
those asked before may still answer: none is waited for less than `timeout_s`, and twenty dead ones do not keep us from the
next. Who has said that it can't answer is not asked again; who was silent is, in the next round: a datagram may have been
lost. At most `MAX_OPEN` sockets at a time and `TOTAL` time-outs in all. `done` is called once, unless `abandon` was. Where
sockets are used up, a question keeps to one; where others wait for one, it ends after a single time-out.

*Not here*: one server (`attempt`), who waits for it, and where the answer is kept (`client`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sized

import attrs
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from mailismus.dns.answer import Answer, RecordType
from mailismus.dns.attempt import Attempt
from mailismus.dns.chance import Chance
from mailismus.dns.counters import DnsCounters
from mailismus.dns.message import failed
from mailismus.dns.servers import NameServer, ServerBook
from mailismus.dns.sockets import DnsReactor, OpenUdp

ROUNDS = 3
"""How often each server is asked, if time allows and none answers."""
MAX_OPEN = 4
TOTAL = 6
"""Time-outs that a question may take in all: 30 s by default."""
MAX_SOCKETS = 100
"""Sockets of all questions together, unless the client is told otherwise."""
MAX_SERVERS = 50
_TICK_S = 1e-6
_SHOWN = 3
"""Servers that a text names."""


@attrs.define(eq=False)
class QuestionContext:
    """What all questions of one client share."""

    reactor: DnsReactor
    open_udp: OpenUdp
    random: Chance
    monotonic: Callable[[], float]
    timeout_s: float
    counters: DnsCounters
    book: ServerBook
    line: Sized
    """Questions that wait for a socket."""
    max_sockets: int
    sockets: int = 0

    @property
    def has_room(self) -> bool:
        """Whether one more socket may be opened."""
        return self.sockets < self.max_sockets


class Question:
    """One question under way, an `AttemptOwner`. Its time runs from when it was made, whether it has begun or not."""

    _log = Logger()

    def __init__(self, world: QuestionContext, name: str, rdtype: RecordType, done: Callable[[Answer], None]) -> None:
        self._world, self._name, self._rdtype, self._done = world, name, rdtype, done
        self._asked_at = self._goes_on_at = world.monotonic()
        self._deadline = self._room_needed_at = self._asked_at + TOTAL * world.timeout_s
        self._plan: deque[tuple[NameServer, float]] = deque()
        self._open: dict[NameServer, Attempt] = {}
        self._reasons: dict[NameServer, str] = {}
        self._silent: set[NameServer] = set()
        self._is_over = False
        self._timer: IDelayedCall = world.reactor.callLater(TOTAL * world.timeout_s, self._no_turn)

    def begin(self, servers: list[NameServer]) -> None:
        """Ask these, in this order."""
        self._room_needed_at = self._world.monotonic() + self._world.timeout_s
        step_s = self._world.timeout_s / MAX_OPEN
        self._plan.extend((server, step_s * 2**turn) for turn in range(ROUNDS) for server in servers[:MAX_SERVERS])
        self._ask_next()

    def abandon(self) -> None:
        """Nobody waits any more."""
        self._is_over = True
        if self._timer.active():
            self._timer.cancel()
        for attempt in [*self._open.values()]:
            self._shut(attempt)

    def answered(self, attempt: Attempt, answer: Answer) -> None:
        """`AttemptOwner`."""
        world = self._world
        self._gone(attempt)
        if world.book.answered(attempt.server):
            self._log.info("The name server {server} answers again", server=str(attempt.server))
        for other in self._open.values():
            if other.began < attempt.began:
                self._was_silent(other)
        for server in self._silent - {attempt.server}:
            self._was_dead(server, "it is silent while another answers")
        self._finish(answer)

    def server_failed(self, attempt: Attempt, text: str, is_dead: bool) -> None:
        """`AttemptOwner`."""
        self._gone(attempt)
        self._reasons[attempt.server] = text
        if is_dead:
            self._was_dead(attempt.server, text)
        self._ask_next()

    def goes_by_tcp(self, attempt: Attempt) -> None:
        """`AttemptOwner`: it lives, and is given its time before the next is asked."""
        self._wait(self._world.timeout_s)

    def _ask_next(self) -> None:
        while self._plan and not self._is_over:
            server, step_s = self._plan.popleft()
            if server in self._reasons:
                continue
            self._wait(step_s if self._plan else self._world.timeout_s)
            self._ask(server)
            return
        if not self._is_over and not self._open:
            self._give_up()

    def _ask(self, server: NameServer) -> None:
        attempt = self._open.get(server)
        if attempt is not None:
            attempt.repeat()
            return
        world = self._world
        if len(self._open) >= MAX_OPEN or (self._open and not world.has_room):
            oldest = next(iter(self._open.values()))
            self._was_silent(oldest)
            self._shut(oldest)
        made = self._open[server] = Attempt(
            world.reactor,
            world.open_udp,
            world.counters,
            server,
            self._name,
            self._rdtype,
            world.random.randrange(0x10000),
            world.timeout_s,
            self,
            world.monotonic(),
        )
        world.sockets += 1
        made.begin()

    def _wait(self, seconds: float) -> None:
        """Go on after so long; earlier, to make room, where others wait for it."""
        world = self._world
        now = world.monotonic()
        self._goes_on_at = now + seconds
        ends_at = self._room_needed_at if world.line else self._deadline
        if self._timer.active():
            self._timer.cancel()
        self._timer = world.reactor.callLater(max(0.0, min(self._goes_on_at, ends_at) - now), self._time_over)

    def _time_over(self) -> None:
        now = self._world.monotonic()
        if now >= self._deadline or (self._world.line and now >= self._room_needed_at):
            self._give_up()
        elif now < self._goes_on_at - _TICK_S:
            self._wait(self._goes_on_at - now)
        elif self._plan:
            self._ask_next()
        else:
            self._give_up()

    def _no_turn(self) -> None:
        self._finish(failed(self._name, "too many questions wait for the name servers"))

    def _give_up(self) -> None:
        for attempt in self._open.values():
            self._was_silent(attempt)
        passed_s = self._world.monotonic() - self._asked_at
        silence = {server: attempt.silence for server, attempt in self._open.items()}
        silence |= {server: f"no answer from {server}" for server in self._silent if server not in silence}
        reasons = list((silence | self._reasons).values()) or ["there is no name server"]
        text = ", ".join(reasons[:_SHOWN])
        if len(reasons) > _SHOWN:
            text += f" and {len(reasons) - _SHOWN} more"
        if silence:
            text += f" in {passed_s:.3g} s"
        self._finish(failed(self._name, text))

    def _finish(self, answer: Answer) -> None:
        if not self._is_over:
            self.abandon()
            self._done(answer)

    def _was_silent(self, attempt: Attempt) -> None:
        self._world.counters.count_timeout()
        self._silent.add(attempt.server)

    def _was_dead(self, server: NameServer, why: str) -> None:
        if self._world.book.was_dead(server, self._world.monotonic()):
            self._log.warn("The name server {server} is asked last for a while: {why}", server=str(server), why=why)

    def _shut(self, attempt: Attempt) -> None:
        self._gone(attempt)
        attempt.close()

    def _gone(self, attempt: Attempt) -> None:
        if self._open.pop(attempt.server, None) is not None:
            self._world.sockets -= 1
