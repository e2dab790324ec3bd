"""One connection of a probe: the deliverer's session (`deliver.sessions.host_session`), without mail, and its transcript.

*Rules*: so greeting, EHLO, STARTTLS, TLS and what a host must show are those of a delivery, and so are the words of a
failure. No credentials are shown. A connection takes about a minute at most: `CONNECT_S`, twice that for TLS, and twice
`STEP_S`; less if the time-outs of `<client>` are shorter.

*Not here*: which hosts (`search`), what follows (`assess`), what is shown of it (`render`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Self

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorCore, ITransport

from mailismus.config.values.settings import ClientSettings, Settings
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.knowledge.quirks import QuirkMemory
from mailismus.deliver.limits.sets import MxSet
from mailismus.deliver.limits.window import Window
from mailismus.deliver.routes.route import HostFinding
from mailismus.deliver.schedule.destination import FoundHost
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.security.failure import reply_of
from mailismus.deliver.security.profile import Profile
from mailismus.deliver.sessions.connector import Connector
from mailismus.deliver.sessions.host_session import HostSession, HostSessionOwner
from mailismus.deliver.sessions.tls_clients import TlsClients, TlsConnection
from mailismus.dns.mx import MxHost
from mailismus.dns.sockets import DnsReactor
from mailismus.mail.reply import Reply
from mailismus.net.tls import TlsSession
from mailismus.probe.assess import ProbedConnection, assess, assess_authentication, next_level
from mailismus.probe.certificate import describe_shown
from mailismus.probe.report import HostReport, TlsFacts
from mailismus.probe.target import Target
from mailismus.probe.transcript import Transcript
from mailismus.queue.stopped import AtOnceWorker

CONNECT_S = 10.0
STEP_S = 10.0
"""The longest for the next reply up to EHLO; twice that for greeting and EHLO together, before TLS and under it."""
TICK_S = 0.1
MAX_CHAIN = 10
"""Certificates of a chain that are shown."""
NOT_DONE = Reply(451, b"4.4.2", b"the connection ended while the session was set up")
NO_ROOM = Reply(451, b"4.3.0", b"this host has no room for another connection")


class ProbeReactor(DnsReactor, IReactorCore):
    """The reactor as a probe needs it. Its timers never jump."""


class _NotedTls(TlsClients):
    """TLS for one session, which is known here as soon as it begins."""

    connection: TlsConnection | None = None

    def begin(self, tcp: ITransport, session: TlsSession, profile: Profile, found: FoundHost, now: float) -> TlsConnection:
        self.connection = super().begin(tcp, session, profile, found, now)
        return self.connection

    def facts(self) -> TlsFacts | None:
        """What the host showed, once its handshake is completed."""
        if self.connection is None:
            return None
        handle = self.connection.transport.getHandle()  # type: ignore[no-untyped-call]  # Twisted's
        chain = handle.get_peer_cert_chain() or []
        cipher = f"{handle.get_cipher_name()} ({handle.get_cipher_bits()} bits)"
        return TlsFacts(handle.get_protocol_version_name(), cipher, tuple(map(describe_shown, chain[:MAX_CHAIN])))


class ProbeSession(HostSession):
    """The deliverer's session with a transcript. `facts`: of its TLS."""

    def __init__(
        self,
        owner: HostSessionOwner[Self],
        noted: _NotedTls,
        connection: Connection,
        found: FoundHost,
        label: bytes,
        name: bytes,
        settings: ClientSettings,
    ) -> None:
        super().__init__(owner, connection, found, label, name, settings)
        self._noted = noted
        self.transcript = Transcript()
        self.facts: TlsFacts | None = None

    def dataReceived(self, data: bytes) -> None:
        self.transcript.received(data)
        super().dataReceived(data)

    def send(self, parts: Sequence[bytes]) -> None:
        self.transcript.sent(parts)
        super().send(parts)

    def handshake_completed(self, tls: bytes) -> None:
        self.transcript.begin_secure()
        self.facts = self._noted.facts()
        super().handshake_completed(tls)


class _Owner:
    """One connection: the owner of its session (`deliver.sessions.host_session.HostSessionOwner`)."""

    def __init__(self, reactor: ProbeReactor, profile: Profile) -> None:
        self.noted = _NotedTls(reactor)
        self.tls: TlsClients = self.noted
        self._profile = profile
        self.monotonic: Callable[[], float] = time.monotonic
        self.quirks = QuirkMemory()
        self.secrets = Secrets(AtOnceWorker())  # no session of a probe has credentials
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self._failure: Reply | None = NOT_DONE
        self._session: ProbeSession
        self._over: Deferred[ProbedConnection] = Deferred()

    def run(self, session: ProbeSession, connector: Connector) -> Deferred[ProbedConnection]:
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

    def connect_failed(self, session: ProbeSession, reply: Reply) -> None:
        self._failure = reply

    def pause(self, seconds: float) -> None:
        self._failure = NO_ROOM

    def tls_established(self, session: ProbeSession, *, is_resumed: bool) -> None:
        """It knows already."""

    def session_authenticated(self, session: ProbeSession) -> None:
        """No credentials are shown."""

    def session_established(self, session: ProbeSession) -> None:
        self._failure = None

    def session_failed(self, session: ProbeSession, reply: Reply) -> None:
        self._failure = reply

    def session_left(self, session: ProbeSession) -> None:
        """It ends."""

    def is_worker_wanted(self, session: ProbeSession) -> bool:
        return False

    def session_closed(self, session: ProbeSession) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
            self._over.callback(self._assess())

    def _assess(self) -> ProbedConnection:
        session, requirement = self._session, self._profile.requirement
        failure = session.client.tls_failure
        if failure is not None:
            self._failure = reply_of(failure, session.label, requirement)
        reply = self._failure
        end = f", demanded by {requirement.demanded_by}".encode("ascii", "replace")
        return ProbedConnection(
            requirement.level,
            session.transcript,
            session.facts,
            fault=None if failure is None else failure.fault,
            reply=b"" if reply is None else bytes(reply),
            words=b"" if reply is None else reply.text.removesuffix(end),
        )


class Prober:
    """Connects with the hosts of one next hop."""

    def __init__(self, target: Target, settings: Settings, reactor: ProbeReactor) -> None:
        client = settings.deliver.client
        client = attrs.evolve(
            client,
            timeout_s=min(client.timeout_s, STEP_S),
            timeout_connect_s=min(client.timeout_connect_s, CONNECT_S),
        )
        self._settings = attrs.evolve(settings.deliver, client=client)
        self._target, self._reactor = target, reactor
        self._name = settings.application.announcehost

    def probe(self, host: MxHost, address: str) -> Deferred[HostReport]:
        """Connect with an address of a host, and tell what it shows. Never fails."""
        return Deferred.fromCoroutine(self._probe(host, address))

    async def _probe(self, host: MxHost, address: str) -> HostReport:
        hop = self._target.next_hop
        attempts = [await self._connect(host, address, hop.profile.level)]
        level = next_level(attempts[0])
        if level is not None:
            attempts.append(await self._connect(host, address, level))
        preference = host.preference if hop.finding is HostFinding.MX else None
        report = HostReport(host.name, address, hop.port, preference, is_secure=host.is_secure)
        assessed = assess(report, attempts)
        return assess_authentication(assessed, hop.profile.credentials, _label(host, address, hop.port))

    def _connect(self, host: MxHost, address: str, level: TlsLevel) -> Deferred[ProbedConnection]:
        port = self._target.next_hop.port
        profile = self._target.profile_at(level)
        owner = _Owner(self._reactor, profile)
        there = Host(Endpoint(address, port), profile, ScheduleLimits())
        connection = Connection(0, there, MxSet(((), 0), Window(None), None), time.monotonic())
        label = _label(host, address, port)
        found = FoundHost(host.name, host.preference, there, host.is_secure)
        session = ProbeSession(owner, owner.noted, connection, found, label, self._name, self._settings.client)
        connector = Connector(self._settings, self._name, self._reactor, time.monotonic, DeliveryCounters())
        return owner.run(session, connector)


def _label(host: MxHost, address: str, port: int) -> bytes:
    """The host as logged behind `relay=`."""
    return b"%b[%b]:%d" % (host.name.encode("ascii", "replace"), address.encode("ascii"), port)
