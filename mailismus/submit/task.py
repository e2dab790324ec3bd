"""The submitting task: its listeners, from their binding to the last answer of a stop.

*Rules*: what can refuse a start happens in `bind`. Stopping: nobody is accepted, no transaction begins, one before its final
dot is cut off, one behind it is waited for; what is unanswered at the deadline may be sent again by its client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReactorTime
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger

from mailismus.config.settings import ListenerSettings
from mailismus.mail.directory import Directory
from mailismus.net.accept import Acceptor
from mailismus.net.descriptors import soft_open_files
from mailismus.net.listen import Listening, bind, close_all
from mailismus.observe.maillog import MailLog
from mailismus.smtp.server_state import Security
from mailismus.submit.policy import Policy
from mailismus.submit.protocol import Session
from mailismus.submit.reception import Desk
from mailismus.submit.seam import Acceptance
from mailismus.submit.sessions import SessionFactory

if TYPE_CHECKING:
    from mailismus.net.tls import TlsServer

MAX_TICK_S = 1.0
STOP_TICK_S = 0.02
"""How often a stop looks whether all is answered."""
FAREWELL_S = 1.0
"""How long a stop waits for connections that have their last reply."""


class SubmitTask:
    """Takes mail from the network into the queue. `factories`: one for each listener, in their order, with the counters.

    Call `bind`, then `start` once the reactor runs, `stop` in the end; `close` undoes `bind` where no `start` follows.
    """

    log = Logger()

    def __init__(
        self,
        host: bytes,
        listeners: Sequence[ListenerSettings],
        directory: Directory,
        max_envelope_bytes: int,
        manager: Acceptance,
        maillog: MailLog,
        clock: IReactorTime,
        poll: IReactorFDSet,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        """`host`: the name we go by. `clock`: timers that do not jump, and the time of day; `poll`: the reactor;
        `monotonic`: seconds, those of `clock` if that does not jump."""
        self._listeners, self._clock, self._poll = listeners, clock, poll
        self._monotonic = monotonic or clock.seconds
        self._max_envelope_bytes = max_envelope_bytes
        self._bound: list[tuple[SessionFactory, Listening]] = []
        self._acceptors: list[Acceptor] = []
        self._ticks: list[LoopingCall] = []
        self.factories: list[SessionFactory] = []
        for listener in listeners:
            desk = Desk(host, Policy(directory, listener.server, max_envelope_bytes), manager, maillog, clock)
            self.factories.append(SessionFactory(desk, _tick_of(listener), *self._tls_of(listener), soft_open_files))

    def reload(self, listeners: Sequence[ListenerSettings], directory: Directory) -> None:
        """Other settings of the same listeners: see `SessionFactory.adopt`. What it raises has changed nothing."""
        adopted = [
            (Policy(directory, listener.server, self._max_envelope_bytes), _tick_of(listener), *self._tls_of(listener))
            for listener in listeners
        ]
        self._listeners = listeners
        for factory, terms in zip(self.factories, adopted, strict=True):
            factory.adopt(*terms)
        for factory, tick in zip(self.factories, self._ticks, strict=False):
            if tick.running and tick.interval != factory.tick_s:
                tick.stop()
                tick.start(factory.tick_s, now=False)

    def _tls_of(self, listener: ListenerSettings) -> tuple[TlsServer | None, Security]:
        ssl = listener.ssl
        if ssl is None:
            return None, Security.NONE
        from mailismus.net.tls import TlsServer  # here: a server without certificates shall not load OpenSSL

        security = Security.FIRST if not ssl.latent else Security.REQUIRED if ssl.mandatory else Security.OFFERED
        return TlsServer(ssl.chain_pem, ssl.key_pem, self._clock), security

    def bind(self) -> list[tuple[str, str, int]]:
        """Make the sockets, which listen from then on without being served. Gives name, address and port of each.

        Touches no reactor. Raises `StartError` (75, 77, 78), having closed what it made.
        """
        try:
            for factory, listener in zip(self.factories, self._listeners, strict=True):
                for one in bind(listener.name, listener.interface, listener.port):
                    self._bound.append((factory, one))
        except BaseException:
            self.close()
            raise
        return [(one.name, one.host, one.port) for _, one in self._bound]

    def close(self) -> None:
        """Give the sockets up again."""
        close_all([one for _, one in self._bound])
        self._bound.clear()

    def start(self) -> None:
        """Serve the sockets."""
        for factory, one in self._bound:
            acceptor = Acceptor(one, factory, self._poll, self._clock)
            acceptor.start()
            self._acceptors.append(acceptor)
        self._bound.clear()
        for factory in self.factories:
            tick = LoopingCall(factory.check_time)
            tick.clock = self._clock
            tick.start(factory.tick_s, now=False)
            self._ticks.append(tick)

    @property
    def names(self) -> list[str]:
        """Of the listeners, in the order of `factories`."""
        return [listener.name for listener in self._listeners]

    @property
    def accept_pauses(self) -> int:
        """How often clients had to wait because none could be accepted (no file descriptors)."""
        return sum(acceptor.pauses for acceptor in self._acceptors)

    def stop(self, deadline: float) -> Deferred[None]:
        """Stop taking mail; fires when every session is over, at the deadline (monotonic seconds) at the latest."""
        return Deferred.fromCoroutine(self._stop(deadline))

    async def _stop(self, deadline: float) -> None:
        seconds = self._monotonic
        self.close()
        for factory in self.factories:
            factory.desk.is_closing = True
        for acceptor in self._acceptors:
            acceptor.stop()
        self._acceptors.clear()
        for session in self._sessions():
            session.shut_down()
        farewell = seconds() + FAREWELL_S
        while (sessions := self._sessions()) and seconds() < deadline:
            if any(session.is_awaited for session in sessions):
                farewell = seconds() + FAREWELL_S
            elif seconds() >= farewell:
                break
            await deferLater(self._clock, STOP_TICK_S)
        unanswered = sum(session.is_awaited for session in sessions)
        if unanswered:
            self.log.warn(
                "Stopped with messages unanswered that may be accepted: their clients may send them again ({number})",
                number=unanswered,
            )
        for session in sessions:
            session.give_up()
        for tick in self._ticks:
            if tick.running:
                tick.stop()

    def _sessions(self) -> list[Session]:
        return [session for factory in self.factories for session in factory.sessions]


def _tick_of(listener: ListenerSettings) -> float:
    timeout_s = listener.server.timeout_s
    return min(MAX_TICK_S, timeout_s / 4) if timeout_s > 0 else MAX_TICK_S
