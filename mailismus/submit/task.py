"""The submit task: its listeners, from binding to the last reply of a stop.

*Rules*: every step that can refuse a start is in `bind`. At a stop no client is accepted and no transaction begins; a
transaction before its final dot is cut off, one after it is waited for; a message that is unanswered at the deadline may be
sent again by its client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReactorTime
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger

from mailismus.config.values.settings import ListenerSettings, SslSettings
from mailismus.mail.directory import Directory
from mailismus.mail.injected import Injected
from mailismus.net.accept import Acceptor
from mailismus.net.descriptors import soft_open_files
from mailismus.net.listen import ListeningSocket, bind, close_all
from mailismus.observe.maillog import MailLog
from mailismus.smtp.server.limits import Security
from mailismus.submit.injection import Injection, later_policy
from mailismus.submit.policy import Policy
from mailismus.submit.protocol import ServerSession
from mailismus.submit.reception import Desk
from mailismus.submit.seam import Acceptance
from mailismus.submit.sessions import SessionFactory

if TYPE_CHECKING:
    from mailismus.net.tls import TlsServer

_TlsServers = dict[tuple[bytes, bytes], "TlsServer"]
"""By certificate chain and key, in PEM."""

MAX_TICK_S = 1.0
STOP_TICK_S = 0.02
"""Seconds between two checks of a stop whether every message is answered."""
FAREWELL_S = 1.0
"""Seconds that a stop waits for connections that have their last reply."""


@attrs.frozen
class NewTerms:
    """Other settings of the same listeners, prepared: for each listener the arguments of `SessionFactory.adopt`."""

    listeners: Sequence[ListenerSettings]
    adopted: Sequence[tuple[Policy, float, TlsServer | None, Security]]
    tls: _TlsServers


class SubmitTask:
    """Takes mail from the network into the queue. `factories`: one per listener, in their order, with the counters.

    Call `bind`, then `start` when the reactor runs, then `stop`. `close` undoes `bind` if no `start` follows.
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
        """`host`: our host name. `clock`: timers that do not jump, and the time of day; `poll`: the reactor; `monotonic`: a
        clock in seconds; default: that of `clock`."""
        self._listeners, self._clock, self._poll = listeners, clock, poll
        self._monotonic = monotonic or clock.seconds
        self._max_envelope_bytes = max_envelope_bytes
        self._bound: list[tuple[SessionFactory, ListeningSocket]] = []
        self._acceptors: list[Acceptor] = []
        self._ticks: list[LoopingCall] = []
        self.factories: list[SessionFactory] = []
        self._tls: _TlsServers = {}
        terms = self.prepare(listeners, directory)
        self._tls = terms.tls
        for policy, tick_s, tls, security in terms.adopted:
            desk = Desk(host, policy, manager, maillog, clock)
            self.factories.append(SessionFactory(desk, tick_s, tls, security, soft_open_files))
        self._later = _later_desk(self.factories[0].desk)

    def prepare(self, listeners: Sequence[ListenerSettings], directory: Directory) -> NewTerms:
        """Prepare other settings of the same listeners for `reload`, in any thread: every step that takes long or can fail.

        Changes nothing. A certificate and key that are in use are not loaded again.
        """
        made: _TlsServers = {}
        adopted = [
            (
                Policy(directory, listener.server, self._max_envelope_bytes),
                _tick_of(listener),
                self._tls_of(listener.ssl, made),
                _security_of(listener.ssl),
            )
            for listener in listeners
        ]
        return NewTerms(listeners, adopted, made)

    def reload(self, terms: NewTerms) -> None:
        """Use other settings from now on: see `SessionFactory.adopt`."""
        self._listeners, self._tls = terms.listeners, terms.tls
        for factory, adopted in zip(self.factories, terms.adopted, strict=True):
            factory.adopt(*adopted)
        self._later = _later_desk(self.factories[0].desk)
        for factory, tick in zip(self.factories, self._ticks, strict=False):
            if tick.running and tick.interval != factory.tick_s:
                tick.stop()
                tick.start(factory.tick_s, now=False)

    def _tls_of(self, ssl: SslSettings | None, made: _TlsServers) -> TlsServer | None:
        """Return the TLS of a listener; listeners with the same certificate and key share one."""
        if ssl is None:
            return None
        from mailismus.net.tls import TlsServer  # here: a server without certificates shall not load OpenSSL

        pair = ssl.chain_pem, ssl.key_pem
        if pair not in made:
            made[pair] = self._tls.get(pair) or TlsServer(*pair, self._clock)
        return made[pair]

    def bind(self) -> list[tuple[str, str, int]]:
        """Make the sockets; they listen, and connections wait until `start`. Return name, address and port of each.

        Uses no reactor. Raises `StartError` (75, 77, 78) and closes the sockets made so far.
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
        """Close the sockets of `bind`."""
        close_all([one for _, one in self._bound])
        self._bound.clear()

    def start(self) -> None:
        """Accept connections."""
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

    def new_injection(self, uid: int, on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> Injection:
        """Begin a message of a program of this machine, by the present rules and limits of the first listener. Arguments: as
        `Injection`."""
        return Injection(self.factories[0].desk, uid, on_end, on_room)

    def new_later_injection(self, uid: int, on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> Injection:
        """As `new_injection`, for a program that has ended: an unknown user is reported to the sender."""
        return Injection(self._later, uid, on_end, on_room)

    @property
    def names(self) -> list[str]:
        """Names of the listeners, in the order of `factories`."""
        return [listener.name for listener in self._listeners]

    @property
    def accept_pauses(self) -> int:
        """How often clients had to wait because no connection could be accepted (no file descriptors)."""
        return sum(acceptor.pauses for acceptor in self._acceptors)

    def stop(self, deadline: float) -> Deferred[None]:
        """Stop taking mail. Fires when every session has ended, at the latest at `deadline` (monotonic seconds)."""
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

    def _sessions(self) -> list[ServerSession]:
        return [session for factory in self.factories for session in factory.sessions]


def _later_desk(desk: Desk) -> Desk:
    """What messages of programs that have ended share: all but the policy is that of the listener."""
    return Desk(desk.host, later_policy(desk.policy), desk.manager, desk.maillog, desk.clock)


def _security_of(ssl: SslSettings | None) -> Security:
    if ssl is None:
        return Security.NONE
    return Security.FIRST if not ssl.latent else Security.REQUIRED if ssl.mandatory else Security.OFFERED


def _tick_of(listener: ListenerSettings) -> float:
    timeout_s = listener.server.timeout_s
    return min(MAX_TICK_S, timeout_s / 4) if timeout_s > 0 else MAX_TICK_S
