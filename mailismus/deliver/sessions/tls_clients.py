"""TLS for sessions with hosts: contexts by profile, sessions that are resumed, and what is known of hosts whose TLS fails.

*Rules*
- A session is resumed only for the same profile, host and server name: it has met what that profile demands. The name of
  its certificate is compared again each time.
- A reload makes all anew, from the files as they are then, and resumes nothing from before.

*Not here*: TLS itself (`net.tls_client`), the states of a session (`protocol`), what follows from a failure (`sessions`).
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from OpenSSL import SSL
from twisted.internet.interfaces import IReactorTime, ITransport
from twisted.python.failure import Failure

from mailismus.config.values.tls import TlsLevel, TlsVersion
from mailismus.deliver.schedule.destination import FoundHost
from mailismus.deliver.security.fallback import Fallbacks
from mailismus.deliver.security.names import find_mismatch
from mailismus.deliver.security.profile import Profile, ReferenceNames, Requirement
from mailismus.dns.addresses import is_address
from mailismus.net.tls import TlsSession
from mailismus.net.tls_client import NO_TLS, ClientTlsTransport, Demands, TlsClient
from mailismus.net.tls_sessions import TlsSessions
from mailismus.smtp.client.starttls import TlsFailure, TlsFault, TlsUse

PLAIN_TEXT = b'it greets in plain text, as hosts with STARTTLS do (latent="Y")'
"""Why there is no TLS from the start."""

_Key = tuple[Profile, str, int, bytes]


def demands_of(requirement: Requirement) -> Demands:
    """A requirement as TLS itself sees it."""
    own = requirement.certificate
    is_verified = requirement.level is TlsLevel.VERIFY
    return Demands(
        is_verified=is_verified,
        is_1_3=requirement.minversion is TlsVersion.TLS_1_3,
        ca_pem=requirement.trust.pem if requirement.trust is not None and is_verified else None,
        chain_pem=own.chain_pem if own is not None else b"",
        key_pem=own.key_pem if own is not None else b"",
    )


def server_name_of(requirement: Requirement, host: str) -> bytes:
    """The name that is sent to a host; empty: it has none, or is an address."""
    name = requirement.server_name or host
    return b"" if is_address(name) else name.encode("ascii", "replace")


class TlsClients:
    """Starts TLS on connections. `now`: monotonic seconds."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._by_demands: dict[Demands, TlsClient] = {}
        self._by_profile: WeakKeyDictionary[Profile, TlsClient] = WeakKeyDictionary()
        self._sessions: TlsSessions[SSL.Session] = TlsSessions()
        self.fallbacks = Fallbacks()
        self._age = 0
        """How often all was made anew."""

    def renew(self) -> None:
        """Make contexts anew, and resume nothing from before."""
        self._age += 1
        self._by_demands.clear()
        self._by_profile.clear()
        self._sessions.clear()

    def use_of(self, profile: Profile, host: tuple[str, int], now: float) -> TlsUse:
        """Whether a connection to this host uses TLS."""
        requirement = profile.requirement
        if requirement.is_immediate:
            return TlsUse.FROM_START
        if requirement.level.is_demanded or profile.credentials is not None:
            return TlsUse.DEMANDED
        if requirement.level is TlsLevel.NONE or self.fallbacks.has(host, now):
            return TlsUse.NEVER
        return TlsUse.IF_OFFERED

    def begin(self, tcp: ITransport, session: TlsSession, profile: Profile, found: FoundHost, now: float) -> TlsConnection:
        """Start TLS. Raises what `TlsClient` raises, if its files make no context."""
        server_name = server_name_of(profile.requirement, found.name)
        key: _Key = (profile, found.host.address, found.host.port, server_name)
        transport = self._client_of(profile).begin(tcp, session, server_name, self._sessions.of(key, now))
        names = profile.requirement.names.with_host(found.name, is_secure=found.is_secure)
        is_first = profile.requirement.is_immediate
        compared = names if profile.level is TlsLevel.VERIFY else None
        return TlsConnection(transport, compared, key, is_first=is_first, age=self._age)

    def keep(self, connection: TlsConnection, now: float) -> None:
        """Keep the TLS session of a connection that met its profile; not of one that began before a reload."""
        if connection.age != self._age:
            return
        transport = connection.transport
        session = transport.keep()
        if session is not None:
            self._sessions.keep(connection.key, session, now, transport.known if transport.is_resumed else None)

    def forget(self, connection: TlsConnection) -> None:
        """Resume this one no more: it failed."""
        self._sessions.forget(connection.key)

    def _client_of(self, profile: Profile) -> TlsClient:
        client = self._by_profile.get(profile)
        if client is None:
            demands = demands_of(profile.requirement)
            client = self._by_demands.get(demands)
            if client is None:
                client = self._by_demands[demands] = TlsClient(demands, self._clock)
            self._by_profile[profile] = client
        return client


class TlsConnection:
    """TLS of one connection to a host. `names` None: none is compared. `is_first`: it came before SMTP. `age`: by how many
    reloads what it was made of is newer than the start."""

    __slots__ = ("_is_first", "_names", "age", "key", "transport")

    def __init__(
        self,
        transport: ClientTlsTransport,
        names: ReferenceNames | None,
        key: _Key,
        *,
        is_first: bool = False,
        age: int = 0,
    ) -> None:
        self.transport, self._names, self.key, self._is_first = transport, names, key, is_first
        self.age = age

    def find_failure(self) -> TlsFailure | None:
        """What is wrong with the certificate, now that the handshake is over; None: nothing."""
        if self._names is None:
            return None
        words = find_mismatch(self.transport.certificate, self._names)
        return TlsFailure(TlsFault.WRONG_NAME, words.encode("ascii", "replace")) if words else None

    @staticmethod
    def is_broken(reason: Failure) -> bool:
        """Whether a connection ended by an error of TLS."""
        return isinstance(reason.value, SSL.Error)

    def failure_of(self, why: bytes) -> TlsFailure:
        """Why the handshake failed. `why`: in words of TLS."""
        untrusted = self.transport.untrusted
        if self.transport.has_begun_plainly and not self._is_first:
            return TlsFailure(TlsFault.INJECTED)  # they came in a later packet than its 220
        if untrusted:
            return TlsFailure(TlsFault.UNTRUSTED, untrusted.encode("ascii", "replace"))
        if why == NO_TLS:
            why = PLAIN_TEXT if self._is_first and self.transport.has_begun_plainly else b"what it sent is not TLS"
        return TlsFailure(TlsFault.HANDSHAKE, why)
