"""The connection to RabbitMQ: made when it is needed, by the first host that answers, and made anew once it was lost.

*Rules*: one attempt at a time; behind a failed one nothing is tried for `PAUSE_S`, so that a broker which is away costs no
caller more than one attempt. What was lost is tried at the next host first: the last one may be frozen, and each attempt
there takes `CONNECT_S`. A connection that leaves a call without an answer is given up if nothing at all came meanwhile: a
node that is well sends heartbeats, and may wait for another one that is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.endpoints import HostnameEndpoint, connectProtocol, wrapClientTLS
from twisted.internet.interfaces import IReactorTime, IStreamClientEndpoint
from twisted.internet.ssl import Certificate, optionsForClientTLS, trustRootFromCertificates

from mailismus.queue.providers.distributed.stores.failure import NotDone, reason_of
from mailismus.queue.providers.distributed.stores.libraries import load
from mailismus.queue.providers.distributed.stores.quiet import QuietEndpoint
from mailismus.queue.providers.distributed.stores.rabbitmq.guarding import GuardedProtocol

STORE = "rabbitmq"
CONNECT_S = 5.0
PAUSE_S = 0.5
HEARTBEAT_S = 5
"""As told to the broker, which sends them twice as often. pika looks each `HEARTBEAT_S` + 5 s whether anything came."""


@attrs.frozen
class RabbitAccess:
    """Where the broker is, and who we are. `ca`: certificates in PEM that its own must lead to; empty: without TLS."""

    hosts: Sequence[tuple[str, int]]
    vhost: str = "/"
    username: str = "guest"
    password: str = attrs.field(default="guest", repr=False)
    ca: bytes = b""


class RabbitConnection:
    """A connection of a client."""

    def __init__(self, reactor: IReactorTime, access: RabbitAccess) -> None:
        self._reactor, self._access = reactor, access
        self._lock = DeferredLock()
        self._first = 0
        """The place of the host that is tried first."""
        self._failed_at: float | None = None
        self._failure = ""
        self._current: Any = None
        self._words: Any = None
        """pika's own connection below that."""
        self.version = ""
        """Of the broker, such as 3.10.8; empty: not known."""
        self.is_blocked = False
        """Whether the broker has said that it reads nothing from us: it has no memory or no disk left."""

    async def get(self) -> Any:
        """The connection of pika. Raises `NotDone`."""
        if self._is_open():
            return self._current
        await self._lock.acquire()
        try:
            if not self._is_open():
                await self._open()
            return self._current
        finally:
            self._lock.release()

    async def new_channel(self) -> Any:
        """A channel of its own. Raises `NotDone`."""
        connection, heard = await self.get(), self.heard
        try:
            return await within(self._reactor, connection.channel(), CONNECT_S)
        except Exception as error:
            if isinstance(error, TimeoutError) and connection is self._current:
                self.give_up(heard)
            raise NotDone(STORE, f"no channel: {reason_of(error)}") from error

    async def close(self) -> None:
        """End it."""
        if self._is_open():
            closed = self._current.closed
            self._current.close()
            await within(self._reactor, closed, CONNECT_S)

    @property
    def heard(self) -> int:
        """How many bytes have come from the broker by this connection."""
        return 0 if self._words is None else int(self._words.bytes_received)

    def give_up(self, heard: int) -> None:
        """It has left a call unanswered: cut it off, if no more was heard than this, before the call."""
        if self.heard == heard:
            self.abort()

    def abort(self) -> None:
        """Cut it off."""
        if self._is_open():
            self._current.transport.abortConnection()

    def _is_open(self) -> bool:
        return self._current is not None and self._current.is_open

    async def _open(self) -> None:
        now = self._reactor.seconds()
        if self._failed_at is not None and now < self._failed_at + PAUSE_S:
            raise NotDone(STORE, self._failure)
        failures, hosts = [], self._access.hosts
        for place in range(self._first, self._first + len(hosts)):
            host, port = hosts[place % len(hosts)]
            try:
                self._current = await self._open_at(host, port)
            except Exception as error:
                failures.append(f"{host}:{port}: {reason_of(error)}")
            else:
                self._failed_at, self._first = None, (place + 1) % len(hosts)
                return
        self._failed_at, self._failure = self._reactor.seconds(), "; ".join(failures)
        raise NotDone(STORE, self._failure)

    async def _open_at(self, host: str, port: int) -> Any:
        access, pika = self._access, load("pika")
        parameters = pika.ConnectionParameters(
            virtual_host=access.vhost,
            credentials=pika.PlainCredentials(access.username, access.password),
            heartbeat=HEARTBEAT_S,
        )
        adapter = load("pika", "adapters", "twisted_connection")
        protocol = adapter.TwistedProtocolConnection(parameters, custom_reactor=self._reactor)
        ready, guard = protocol.ready, GuardedProtocol(protocol)
        endpoint: IStreamClientEndpoint = HostnameEndpoint(self._reactor, host, port, timeout=CONNECT_S)
        if access.ca:
            roots = trustRootFromCertificates([Certificate.loadPEM(access.ca)])
            endpoint = wrapClientTLS(optionsForClientTLS(host, trustRoot=roots), endpoint)
        await connectProtocol(QuietEndpoint(endpoint), guard)
        try:
            await within(self._reactor, ready, CONNECT_S)
            # pika gives its own connection, which hears the broker's words, with a channel alone.
            channel = await within(self._reactor, protocol.channel(), CONNECT_S)
        except Exception as error:
            protocol.transport.abortConnection()
            refusal = guard.refusal()
            raise (ConnectionError(refusal) if refusal else error) from None
        guard.trust()
        self._hear(channel.connection)
        channel.close()
        return protocol

    def _hear(self, connection: Any) -> None:
        self._words, self.is_blocked = connection, False
        self.version = str((connection.server_properties or {}).get("version", ""))
        connection.add_on_connection_blocked_callback(lambda *_: self._block(True))
        connection.add_on_connection_unblocked_callback(lambda *_: self._block(False))

    def _block(self, is_blocked: bool) -> None:
        self.is_blocked = is_blocked


def within(reactor: IReactorTime, deferred: Deferred[Any], seconds: float) -> Deferred[Any]:
    """The same result, or `TimeoutError` after so long; a later result is dropped. The deferred itself is not cancelled:
    pika would be confused."""
    result: Deferred[Any] = Deferred()
    late = reactor.callLater(seconds, result.errback, TimeoutError(f"no answer in {seconds:g} s"))

    def finish(value: Any) -> None:
        if not result.called:
            late.cancel()
            result.callback(value)  # a Failure takes the way of errors

    deferred.addBoth(finish)
    return result


def close_channel(channel: Any) -> None:
    """End a channel, if it has not ended."""
    if channel.is_open:
        channel.close()
