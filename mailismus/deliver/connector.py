"""The connector: a connection for a next hop, to the host that the schedule chooses; and what can't be reached is deferred.

    look up its hosts -> choose one -> connect -> a session, or the next host, or none is left

*Rules*: who reaches no session with one host tries the next. What waits is deferred, and has used up an attempt, when each
host was tried or is known to be dead; the reply is that of the host that died last, and `relay=` names it if it was tried
just now. A look-up that hangs holds up its own next hop alone. Names are asked for again every `LOCATED_S` while connections
are wanted; their age is the locator's affair. Where it is this host that can make no connection, for want of descriptors or
memory, nobody tries for `PAUSE_S`: that is nothing against the other host, and no attempt.

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
from mailismus.deliver.hosts import Host, HostTrouble
from mailismus.deliver.job import Job
from mailismus.deliver.locator import Located, Locator
from mailismus.deliver.protocol import ClientSession, ClientSessionState, Keeper
from mailismus.deliver.route import NOBODY
from mailismus.deliver.schedule import Candidate, Hop, Schedule
from mailismus.deliver.settling import Settling
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply

LOCATED_S = 10.0
PAUSE_S = 1.0
_OURS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
NO_HOST = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.4", b"no mail host has an address"), NOBODY)


class ConnectionOwner(Keeper, Protocol):
    """What it needs of the keeper of all sessions."""

    def dispatch(self, hops: tuple[Hop[ClientSession], ...]) -> None:
        """The hosts of these next hops are known now: get going."""

    def release(self, hop: Hop[ClientSession], count: int) -> None:
        """So many of its entries are settled."""


class Connector:
    """Makes sessions for their keeper; `sessions` are all that have not been closed, and their hosts."""

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
        """Connections that were begun before tell nothing about their hosts."""

    def reload(self, settings: DeliverSettings) -> None:
        """Other settings, for connections to come."""
        self._settings = settings

    def use_locator(self, locator: Locator) -> None:
        """Another one, for look-ups to come."""
        self._locator = locator

    def stop(self) -> None:
        """What is looked up is of no use any more."""
        self._is_stopped = True

    def connect(self, owner: ConnectionOwner, hop: Hop[ClientSession], now: float) -> bool:
        """One more connection for this next hop; False: not now, and why is dealt with. `owner`: of the session."""
        if now < self._not_before or (hop.located_until <= now and not self._locate(owner, hop, now)):
            return False
        candidate = self._schedule.choose(hop, now)
        if candidate is not None:
            self._open(owner, hop, candidate)
            return True
        if hop not in self._schedule.starved:
            self._defer_tried(owner, hop, now, NOBODY)
        return False

    def forget_hosts(self) -> None:
        """Connections from now on, and names that are asked for anew, show what the hosts are like."""
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
        factory = _Connecting(session, partial(self._connect_failed, owner))
        self._tcp.connectTCP(host.address, host.port, factory, timeout=client.timeout_connect_s)

    # ------------------------------------------------------------------ whose hosts are where

    def _locate(self, owner: ConnectionOwner, hop: Hop[ClientSession], now: float) -> bool:
        """Look up its hosts; False: they are not known now."""
        if hop.is_locating:
            return False
        located = self._locator.locate(hop.next_hop)
        if isinstance(located, Deferred):
            hop.begin_locating()
            located.addCallback(self._located, owner, hop)
            return False
        return self._use(owner, located, hop, now, was_known=True)

    def _located(self, located: Located, owner: ConnectionOwner, hop: Hop[ClientSession]) -> None:
        hop.end_locating()
        if not self._is_stopped and self._use(owner, located, hop, self._monotonic()):
            owner.dispatch((hop,))
        self._schedule.forget_if_idle(hop)

    def _use(
        self, owner: ConnectionOwner, located: Located, hop: Hop[ClientSession], now: float, *, was_known: bool = False
    ) -> bool:
        """These are its hosts now, if there are any. `was_known`: nobody was asked."""
        if not isinstance(located, Outcome):
            find, port = self._schedule.hosts.find, hop.next_hop.port
            hop.set_candidates(
                [Candidate(found.name, found.preference, find(one, port)) for found in located for one in found.addresses]
            )
            if hop.candidates:
                hop.set_located(now + LOCATED_S)
                return True
            located = NO_HOST
        if hop.sessions:  # what was found before still serves
            hop.set_located(now + LOCATED_S)
            return bool(hop.candidates)
        self._settle(owner, hop, hop.drain(), located, math.inf if was_known else None)
        return False

    # ------------------------------------------------------------------ what can't be reached

    def _connect_failed(self, owner: ConnectionOwner, session: ClientSession, failure: Failure) -> None:
        if session.state is ClientSessionState.GONE:
            return
        number = getattr(failure.value, "osError", None)
        if number in _OURS:
            self._wait(os.strerror(number))
            session.give_up(b"not connected")
            return
        if isinstance(failure.value, TimeoutError):
            words = "timed out"
        else:
            words = os.strerror(number) if isinstance(number, int) else str(failure.value)
        text = f"connect to {session.label.decode('ascii')} failed: {words}"
        reply = Reply(451, b"4.4.1", text.encode("ascii", "replace")[:500])
        self.host_failed(owner, session, reply, HostTrouble.NO_CONNECTION)
        session.give_up(b"not connected")

    def _wait(self, reason: str) -> None:
        self._settling.counters.count_failed_connection()
        now = self._monotonic()
        if now >= self._not_before:
            self._log.warn("No connections can be made, mail waits: {reason}", reason=reason)
        self._not_before = now + PAUSE_S

    def host_failed(self, owner: ConnectionOwner, session: ClientSession, reply: Reply, trouble: HostTrouble) -> None:
        """There is no session with the host of this one, or it was worth nothing."""
        self._settling.counters.count_failed_connection()
        self._log.info(
            "No session with {host}: {reply}", host=session.label.decode("ascii"), reply=bytes(reply).decode("ascii")
        )
        if session.opened_at < self._trusted_since:
            return  # what waits gets another connection
        now = self._monotonic()
        self._schedule.hosts.failed(self.sessions[session], reply, trouble, now)
        if not self._is_stopped:
            self._defer_tried(owner, session.hop, now, session.label)

    def _defer_tried(self, owner: ConnectionOwner, hop: Hop[ClientSession], now: float, label: bytes) -> None:
        """What has been tried with every host is deferred for the reason of the last one. `label`: who was tried just now;
        `NOBODY`: all are known to be dead."""
        until = hop.tried_until(now)
        if until > 0:
            known_for_s = hop.dead_for_s(now) if label == NOBODY else None
            outcome = Outcome(OutcomeKind.DEFERRED, hop.last_reply(), label)
            self._settle(owner, hop, hop.drain(until), outcome, known_for_s)

    def _settle(
        self, owner: ConnectionOwner, hop: Hop[ClientSession], jobs: list[Job], outcome: Outcome, known_for_s: float | None
    ) -> None:
        now = self._monotonic()
        for job in jobs:
            job.begin(now)
            owner.release(hop, len(job.entries))
            self._settling.settle(job, job.entries, outcome.reply, outcome.host, known_for_s)


class _Connecting(ClientFactory):
    """Twisted's way to one connection."""

    noisy = False

    def __init__(self, session: ClientSession, on_failed: Callable[[ClientSession, Failure], None]) -> None:
        self._session, self._on_failed = session, on_failed

    def buildProtocol(self, addr: IAddress | IPv4Address | IPv6Address | None) -> ClientSession:
        return self._session

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        self._on_failed(self._session, reason)
