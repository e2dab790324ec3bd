"""The connector: opens a connection for a next hop, to the host that the schedule chooses, and defers jobs without a host.

    look up the hosts -> choose one -> connect -> a session, the next host, or no host left

*Rules*:
- If no session with one host succeeds, the next host is tried.
- A job that waits is deferred, and the attempt counts, when each host was tried or is known to be dead. The reply is that of
  the host that died last; `relay=` names it if it was tried just now.
- A look-up that hangs delays its own next hop only. While connections are wanted, names are looked up again every
  `LOCATED_S`; the age of an answer is the locator's concern.
- After EMFILE, ENFILE, ENOBUFS or ENOMEM no connection is opened for `PAUSE_S`. That is held against no host, and is no
  attempt.

*Not here*: jobs, limits and the order of hosts (`schedule`), how long a host is dead (`hosts`).
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable
from functools import partial
from typing import Protocol

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.error import TimeoutError  # noqa: A004  # Twisted's name for it
from twisted.internet.interfaces import IAddress, IConnector, IReactorTCP
from twisted.internet.protocol import ClientFactory
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.settings import DeliverSettings
from mailismus.deliver.hosts import Host, HostFailure
from mailismus.deliver.job import Job
from mailismus.deliver.locator import Located, Locator
from mailismus.deliver.protocol import ClientSession, ClientSessionOwner, ClientSessionState
from mailismus.deliver.route import HOST_NONE
from mailismus.deliver.schedule import Candidate, Hop, Schedule
from mailismus.deliver.settling import Settling
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply

LOCATED_S = 10.0
PAUSE_S = 1.0
_LOCAL_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
NO_HOST = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.4", b"no mail host has an address"), HOST_NONE)


class ConnectionOwner(ClientSessionOwner, Protocol):
    """The owner of all sessions, as the connector uses it."""

    def dispatch(self, hops: tuple[Hop[ClientSession], ...]) -> None:
        """Start work for these next hops: their hosts are known now."""

    def release(self, hop: Hop[ClientSession], sender: bytes, count: int) -> None:
        """Release this many settled entries of a next hop and of a message with this sender."""


class Connector:
    """Opens sessions for their owner. `sessions`: each session that is not closed, with its host."""

    _log = Logger()

    def __init__(
        self,
        settings: DeliverSettings,
        name: bytes,
        tcp: IReactorTCP,
        monotonic: Callable[[], float],
        settling: Settling,
        locator: Locator,
        schedule: Schedule[ClientSession],
    ) -> None:
        self._name, self._tcp, self._monotonic = name, tcp, monotonic
        self._settling, self._schedule = settling, schedule
        self._settings, self._locator = settings, locator
        self.sessions: dict[ClientSession, Host] = {}
        self._is_stopped = False
        self._not_before = 0.0
        self._trusted_since = 0.0
        """A connection begun earlier tells nothing about its host."""

    def reload(self, settings: DeliverSettings) -> None:
        """Use other settings for later connections."""
        self._settings = settings

    def use_locator(self, locator: Locator) -> None:
        """Use another locator for later look-ups."""
        self._locator = locator

    def stop(self) -> None:
        """Ignore the results of look-ups and connections from now on."""
        self._is_stopped = True

    def connect(self, owner: ConnectionOwner, hop: Hop[ClientSession], now: float) -> bool:
        """Open one more connection for this next hop, with a session of this owner. False: none can be opened now; the jobs
        are dealt with."""
        if now < self._not_before or (hop.located_until <= now and not self._locate(owner, hop, now)):
            return False
        candidate = self._schedule.choose(hop, now)
        if candidate is not None:
            self._open(owner, hop, candidate)
            return True
        if hop not in self._schedule.starved:
            self._defer_tried(owner, hop, now, HOST_NONE)
        return False

    def forget_hosts(self) -> None:
        """Trust only what connections and look-ups begun from now on tell about hosts."""
        self._trusted_since = self._monotonic()
        self._locator.forget()
        for hop in self._schedule.hops.values():
            hop.set_located(0.0)

    def _open(self, owner: ConnectionOwner, hop: Hop[ClientSession], candidate: Candidate) -> None:
        host, client = candidate.host, self._settings.client
        session = ClientSession(owner, hop, candidate.name, host.address, self._name, client)
        self.sessions[session] = host
        self._schedule.connection_opened(hop, host)
        self._settling.counters.count_connection()
        factory = _SessionFactory(session, partial(self._connect_failed, owner))
        self._tcp.connectTCP(host.address, host.port, factory, timeout=client.timeout_connect_s)

    # ------------------------------------------------------------------ looking up hosts

    def _locate(self, owner: ConnectionOwner, hop: Hop[ClientSession], now: float) -> bool:
        """Look up the hosts of a next hop. False: they are not known now."""
        if hop.is_locating:
            return False
        located = self._locator.locate(hop.next_hop)
        if isinstance(located, Deferred):
            hop.begin_locating()
            located.addCallback(self._located, owner, hop)
            return False
        return self._adopt_hosts(owner, located, hop, now, was_known=True)

    def _located(self, located: Located, owner: ConnectionOwner, hop: Hop[ClientSession]) -> None:
        hop.end_locating()
        if not self._is_stopped and self._adopt_hosts(owner, located, hop, self._monotonic()):
            owner.dispatch((hop,))
        self._schedule.forget_if_idle(hop)

    def _adopt_hosts(
        self, owner: ConnectionOwner, located: Located, hop: Hop[ClientSession], now: float, *, was_known: bool = False
    ) -> bool:
        """Set the hosts of a next hop. False: there are none. `was_known`: the answer was known without a look-up."""
        if not isinstance(located, Outcome):
            find, port = self._schedule.hosts.find, hop.next_hop.port
            hop.set_candidates(
                [Candidate(found.name, found.preference, find(one, port)) for found in located for one in found.addresses]
            )
            if hop.candidates:
                hop.set_located(now + LOCATED_S)
                return True
            located = NO_HOST
        if hop.sessions:  # the hosts found earlier still serve
            hop.set_located(now + LOCATED_S)
            return bool(hop.candidates)
        self._settle(owner, hop, hop.drain(), located, math.inf if was_known else None)
        return False

    # ------------------------------------------------------------------ hosts that fail

    def _connect_failed(self, owner: ConnectionOwner, session: ClientSession, failure: Failure) -> None:
        if session.state is ClientSessionState.GONE:
            return
        number = getattr(failure.value, "osError", None)
        if number in _LOCAL_ERRORS:
            self._pause(os.strerror(number))
            session.give_up(b"not connected")
            return
        if isinstance(failure.value, TimeoutError):
            words = "timed out"
        else:
            words = os.strerror(number) if isinstance(number, int) else str(failure.value)
        text = f"connect to {session.label.decode('ascii')} failed: {words}"
        reply = Reply(451, b"4.4.1", text.encode("ascii", "replace")[:500])
        self.host_failed(owner, session, reply, HostFailure.NO_CONNECTION)
        session.give_up(b"not connected")

    def _pause(self, reason: str) -> None:
        self._settling.counters.count_failed_connection()
        now = self._monotonic()
        if now >= self._not_before:
            self._log.warn("No connections can be made, mail waits: {reason}", reason=reason)
        self._not_before = now + PAUSE_S

    def host_failed(self, owner: ConnectionOwner, session: ClientSession, reply: Reply, kind: HostFailure) -> None:
        """Note that no session with this session's host succeeded, or that it was lost before a message."""
        self._settling.counters.count_failed_connection()
        self._log.info(
            "No session with {host}: {reply}", host=session.label.decode("ascii"), reply=bytes(reply).decode("ascii")
        )
        if session.opened_at < self._trusted_since:
            return  # the jobs get another connection
        now = self._monotonic()
        self._schedule.hosts.note_failure(self.sessions[session], reply, kind, now)
        if not self._is_stopped:
            self._defer_tried(owner, session.hop, now, session.label)

    def _defer_tried(self, owner: ConnectionOwner, hop: Hop[ClientSession], now: float, label: bytes) -> None:
        """Defer the jobs that were tried with every host, with the reply of the last one. `label`: the host tried just now;
        `HOST_NONE`: all are known to be dead."""
        until = hop.tried_until(now)
        if until > 0:
            known_for_s = hop.dead_for_s(now) if label == HOST_NONE else None
            outcome = Outcome(OutcomeKind.DEFERRED, hop.last_reply(), label)
            self._settle(owner, hop, hop.drain(until), outcome, known_for_s)

    def _settle(
        self, owner: ConnectionOwner, hop: Hop[ClientSession], jobs: list[Job], outcome: Outcome, known_for_s: float | None
    ) -> None:
        now = self._monotonic()
        for job in jobs:
            job.begin(now)
            owner.release(hop, job.message.sender, len(job.entries))
            self._settling.settle(job, job.entries, outcome.reply, outcome.host, known_for_s)


class _SessionFactory(ClientFactory):
    """Twisted's factory of one connection."""

    noisy = False

    def __init__(self, session: ClientSession, on_failed: Callable[[ClientSession, Failure], None]) -> None:
        self._session, self._on_failed = session, on_failed

    def buildProtocol(self, addr: IAddress | IPv4Address | IPv6Address | None) -> ClientSession:
        return self._session

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        self._on_failed(self._session, reason)
