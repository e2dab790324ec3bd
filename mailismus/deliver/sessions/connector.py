"""The connector: makes the connection of a session, and says why there is none.

*Rules*: a failure is told in words of SMTP. After EMFILE, ENFILE, ENOBUFS or ENOMEM no connection is made for `PAUSE_S`:
that is held against no host, and is no attempt.

*Not here*: which host, and what follows from a failure (`schedule`, `sessions`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar, cast

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.error import TimeoutError  # noqa: A004  # Twisted's name for it
from twisted.internet.interfaces import IAddress, IConnector, IReactorTCP, IReactorUNIX
from twisted.internet.protocol import ClientFactory
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import DeliverSettings
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.sessions.host_session import ClientSessionState, HostSession
from mailismus.mail.reply import Reply

PAUSE_S = 1.0
_LOCAL_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


S = TypeVar("S", bound=HostSession)
S_contra = TypeVar("S_contra", bound=HostSession, contravariant=True)


class ConnectionOwner(Protocol[S_contra]):
    """The owner of all sessions, as the connector uses it."""

    def connect_failed(self, session: S_contra, reply: Reply) -> None:
        """Note that there is no connection to the host of this session."""

    def pause(self, seconds: float) -> None:
        """Make no connections for so long: this machine has no room for more."""


class Connector:
    """Makes connections. `name`: this host's name for EHLO. `tcp`: it connects with Unix sockets too, as Twisted's do."""

    _log = Logger()

    def __init__(
        self,
        settings: DeliverSettings,
        name: bytes,
        tcp: IReactorTCP,
        monotonic: Callable[[], float],
        counters: DeliveryCounters,
    ) -> None:
        self.name = name
        self._tcp, self._monotonic = tcp, monotonic
        self._settings, self._counters = settings, counters
        self._paused_until = 0.0

    @property
    def paused_until(self) -> float:
        """When connections are made again (monotonic seconds)."""
        return self._paused_until

    def reload(self, settings: DeliverSettings) -> None:
        """Use other settings for later connections."""
        self._settings = settings

    def connect(self, session: S, owner: ConnectionOwner[S]) -> None:
        """Connect a session of this owner with its host."""
        self._counters.count_connection()
        host = session.connection.host
        factory = _SessionFactory(session, partial(self._failed, owner, session))
        timeout_s = self._settings.client.timeout_connect_s
        if host.port:
            self._tcp.connectTCP(host.address, host.port, factory, timeout=timeout_s)
        else:
            cast(IReactorUNIX, self._tcp).connectUNIX(host.address, factory, timeout=timeout_s)

    def note_failed(self, session: HostSession, reply: Reply) -> None:
        """Count and log that there was no session."""
        self._counters.count_failed_connection()
        self._log.info(
            "No session with {host}: {reply}", host=session.label.decode("ascii"), reply=bytes(reply).decode("ascii")
        )

    def _failed(self, owner: ConnectionOwner[S], session: S, failure: Failure) -> None:
        if session.state is ClientSessionState.GONE:
            return
        number = getattr(failure.value, "osError", None)
        if number in _LOCAL_ERRORS:
            self._pause(owner, os.strerror(number))
            session.give_up(b"not connected")
            return
        if isinstance(failure.value, TimeoutError):
            words = "timed out"
        else:
            words = os.strerror(number) if isinstance(number, int) else str(failure.value)
        text = f"connect to {session.label.decode('ascii')} failed: {words}"
        owner.connect_failed(session, Reply(451, b"4.4.1", text.encode("ascii", "replace")[:500]))
        session.give_up(b"not connected")

    def _pause(self, owner: ConnectionOwner[S], reason: str) -> None:
        self._counters.count_failed_connection()
        now = self._monotonic()
        if now >= self._paused_until:
            self._log.warn("No connections can be made, mail waits: {reason}", reason=reason)
        self._paused_until = now + PAUSE_S
        owner.pause(PAUSE_S)


class _SessionFactory(ClientFactory):
    """Twisted's factory of one connection."""

    noisy = False

    def __init__(self, session: HostSession, on_failed: Callable[[Failure], None]) -> None:
        self._session, self._on_failed = session, on_failed

    def buildProtocol(self, addr: IAddress | IPv4Address | IPv6Address | None) -> HostSession:
        return self._session

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        self._on_failed(reason)
