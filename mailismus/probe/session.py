"""One connection of a probe: the deliverer's own session (`deliver.protocol`), which gets no mail, and a transcript of it.

*Rules*: so greeting, EHLO, STARTTLS and what a host must show are those of a delivery, and so are the words of a failure. A
connection takes `TOTAL_S` at most, or less if the time-outs of `<client>` are shorter.

*Not here*: which hosts (`search`), what is shown of them (`render`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorCore

from mailismus.config.values.settings import ClientSettings, Settings
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.connector import Connector
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.job import Job
from mailismus.deliver.limits.sets import MxSet
from mailismus.deliver.limits.window import Window
from mailismus.deliver.protocol import ClientSession, ClientSessionOwner
from mailismus.deliver.quirks import QuirkMemory
from mailismus.deliver.route import HostFinding, NextHop
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.dns.mx import MxHost
from mailismus.dns.sockets import DnsReactor
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.probe.report import HostReport
from mailismus.probe.transcript import GREETING, Transcript
from mailismus.queue.interface import IContent

CONNECT_S = 10.0
STEP_S = 20.0
"""The longest that greeting, EHLO, and TLS with a second EHLO may take each."""
TICK_S = 0.1
NOT_DONE = Reply(451, b"4.4.2", b"the connection ended while the session was set up")
NO_ROOM = Reply(451, b"4.3.0", b"this host has no room for another connection")


class ProbeReactor(DnsReactor, IReactorCore):
    """The reactor as a probe needs it. Its timers never jump."""


@attrs.frozen
class Shown:
    """What one connection came to. `failure`: why there is no session, as the log would say it; None: there is one."""

    transcript: Transcript
    failure: Reply | None


class ProbeSession(ClientSession):
    """The deliverer's session with a transcript."""

    def __init__(
        self, owner: ClientSessionOwner, connection: Connection, label: bytes, name: bytes, settings: ClientSettings
    ) -> None:
        super().__init__(owner, connection, label, name, settings)
        self.transcript = Transcript()

    def dataReceived(self, data: bytes) -> None:
        self.transcript.received(data)
        super().dataReceived(data)

    def send(self, parts: Sequence[bytes]) -> None:
        self.transcript.sent(parts)
        super().send(parts)


class _Attempt:
    """One connection: the owner of its session (`deliver.protocol.ClientSessionOwner`), which has no mail for it."""

    max_idle_s = 0.0

    def __init__(self, reactor: ProbeReactor) -> None:
        self.monotonic: Callable[[], float] = time.monotonic
        self.quirks = QuirkMemory()
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self._failure: Reply | None = NOT_DONE
        self._session: ProbeSession
        self._over: Deferred[Shown] = Deferred()

    def run(self, session: ProbeSession, connector: Connector) -> Deferred[Shown]:
        """Connect, and tell what that came to."""
        self._session = session
        self._tick()
        connector.connect(session, self)
        return self._over

    def _tick(self) -> None:
        self._timer = self._reactor.callLater(TICK_S, self._tick)
        if time.monotonic() >= self._session.deadline:
            self._session.on_deadline()

    # ------------------------------------------------------------------ called by the connector and the session

    def connect_failed(self, session: ClientSession, reply: Reply) -> None:
        self._failure = reply

    def pause(self, seconds: float) -> None:
        self._failure = NO_ROOM

    def session_established(self, session: ClientSession) -> None:
        self._failure = None

    def next_job(self, session: ClientSession, now: float, *, is_ahead: bool = False) -> Job | None:
        return None

    def keep_idle(self, session: ClientSession) -> bool:
        return False

    def settle(self, session: ClientSession, job: Job, reply: Reply) -> None:
        """There are no jobs."""

    def settle_refused(self, session: ClientSession, job: Job, position: int, reply: Reply) -> None:
        """As above."""

    def put_back(self, session: ClientSession, job: Job) -> None:
        """As above."""

    def session_failed(self, session: ClientSession, reply: Reply) -> None:
        self._failure = reply

    def session_left(self, session: ClientSession) -> None:
        """It ends."""

    def session_closed(self, session: ClientSession) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
            self._over.callback(Shown(self._session.transcript, self._failure))

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        raise NotImplementedError


class Prober:
    """Connects with the hosts of one next hop. `now`: monotonic seconds."""

    def __init__(self, next_hop: NextHop, settings: Settings, reactor: ProbeReactor) -> None:
        client = settings.deliver.client
        self._settings = attrs.evolve(
            settings.deliver,
            client=attrs.evolve(
                client,
                timeout_s=min(client.timeout_s, STEP_S),
                timeout_connect_s=min(client.timeout_connect_s, CONNECT_S),
            ),
        )
        self._next_hop, self._reactor = next_hop, reactor
        self._name = settings.application.announcehost

    def probe(self, host: MxHost, address: str) -> Deferred[HostReport]:
        """Connect with an address of a host, and tell what it shows. Never fails."""
        return Deferred.fromCoroutine(self._probe(host, address))

    async def _probe(self, host: MxHost, address: str) -> HostReport:
        shown = await self._connect(host, address)
        transcript = shown.transcript
        return HostReport(
            host.name,
            address,
            self._next_hop.port,
            host.preference if self._next_hop.finding is HostFinding.MX else None,
            greeting=transcript.reply_to(GREETING),
            offers=transcript.offers(0),
            starttls=transcript.reply_to(b"STARTTLS"),
            offers_under_tls=transcript.offers(1),
            reached=TlsLevel.NONE if shown.failure is None else None,
            trouble=b"" if shown.failure is None else bytes(shown.failure),
        )

    def _connect(self, host: MxHost, address: str) -> Deferred[Shown]:
        attempt = _Attempt(self._reactor)
        connector = Connector(self._settings, self._name, self._reactor, time.monotonic, DeliveryCounters())
        there = Host(address, self._next_hop.port, ScheduleLimits())
        connection = Connection(0, there, MxSet(((), 0), Window(None), None), time.monotonic())
        label = b"%b[%b]:%d" % (host.name.encode("ascii", "replace"), address.encode("ascii"), self._next_hop.port)
        session = ProbeSession(attempt, connection, label, self._name, self._settings.client)
        return attempt.run(session, connector)
